package wire

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// TokenRequest asks for a token.
type TokenRequest struct {
	Name      string            `json:"name,omitempty" maxLength:"100" example:"deploys" doc:"what it is for"`
	Scopes    []string          `json:"scopes" minItems:"1" maxItems:"5" enum:"read,run,write,work,admin" example:"[\"read\",\"run\"]" doc:"what it allows; docs/access.md says which scope brings others"`
	ExpiresIn schedule.Duration `json:"expires_in,omitzero" doc:"how long it is good for; without it, until it is revoked"`
}

// SessionRequest asks for a session of the token that brings it.
type SessionRequest struct {
	Name      string            `json:"name,omitempty" maxLength:"100" example:"console" doc:"what it is for"`
	Scopes    []string          `json:"scopes,omitempty" minItems:"1" maxItems:"3" enum:"read,run,write" doc:"what it allows, which the token has to allow too; read or write among them. Default: read"`
	ExpiresIn schedule.Duration `json:"expires_in,omitzero" doc:"how long it is good for, at most 12h, which is the default; it ends with its token in any case"`
}

// Token is a credential without its secret.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"`
	Tenant    string    `json:"tenant"`
	Parent    string    `json:"parent,omitempty" doc:"the token of which it is a session"`
	Scopes    []string  `json:"scopes"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	UsedAt    time.Time `json:"used_at,omitzero" doc:"when it was last used, to the hour"`
}

// NewToken is a token at the only time at which its secret is to be had.
type NewToken struct {
	Token
	Secret string `json:"token" doc:"what its owner sends as Authorization: Bearer; it is shown this once"`
}

// TokenPage is a page of tokens.
type TokenPage struct {
	Items []Token `json:"items"`
	Next  string  `json:"next,omitempty"`
}
