package api

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// textOrSecret stands for target.Value in schemas: it is text in JSON, or an object that names a secret.
type textOrSecret struct{}

// Schema gives it to the framework.
func (textOrSecret) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Extensions:  map[string]any{namedAs: "TextOrSecret"},
		Description: `text in quotes, or {"secret": "name"}`,
		OneOf: []*huma.Schema{
			{Type: huma.TypeString},
			{
				Extensions:           map[string]any{namedAs: "SecretReference"},
				Type:                 huma.TypeObject,
				Properties:           map[string]*huma.Schema{"secret": {Type: huma.TypeString, Pattern: target.SecretNamePattern, Description: "name of the secret"}},
				Required:             []string{"secret"},
				AdditionalProperties: false,
			},
		},
	}
}
