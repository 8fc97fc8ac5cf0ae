package client

import (
	"encoding/json"
	"net/http"
	"strings"
)

// unsent is an error of Config.Authorize: trying again would not help.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// authorize makes a request show who calls.
func (c *Client) authorize(req *http.Request, body []byte) error {
	switch {
	case c.cfg.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	case c.cfg.Authorize != nil:
		if err := c.cfg.Authorize(req, body); err != nil {
			return unsent{err}
		}
	}
	return nil
}

// gatewayBusy is how API Gateway calls a refusal for load. A quota that is used up has a name of its own: it lasts for hours.
const gatewayBusy = "TooManyRequestsException"

// gatewayRefusal tells what API Gateway calls its own refusal, and what it says. Answers of the server behind it name no such type.
func gatewayRefusal(header http.Header, text []byte) (kind, message string) {
	kind, _, _ = strings.Cut(header.Get("X-Amzn-Errortype"), ":")
	if kind == "" {
		return "", ""
	}
	var said struct {
		Message string `json:"message"` // or "Message": the decoder takes both
	}
	if err := json.Unmarshal(text, &said); err != nil || said.Message == "" {
		said.Message = kind
	}
	return kind, said.Message
}
