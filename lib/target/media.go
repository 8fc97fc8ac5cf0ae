package target

import (
	"errors"
	"mime"
	"strings"
)

// IsJSON tells whether a media type says that something is JSON, whatever parameters it has.
func IsJSON(mediaType string) bool {
	name, _, err := mime.ParseMediaType(mediaType)
	return (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && (name == "application/json" || strings.HasSuffix(name, "+json"))
}
