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
	Scopes    []string          `json:"scopes,omitempty" minItems:"1" maxItems:"3" enum:"read,run,write" doc:"what it allows at most, read or write among them: it has those that the token has, too. Default: read"`
	ExpiresIn schedule.Duration `json:"expires_in,omitzero" doc:"how long it is good for, at most 12h, which is the default; it ends with its token in any case"`
	Cookie    bool              `json:"cookie,omitempty" doc:"have the browser keep the secret in a cookie that no script can read. Pages of the server itself get one, over TLS; the answer has no secret then"`
}

// Session is a session that was opened.
type Session struct {
	Token
	Secret string `json:"token,omitempty" doc:"what its owner sends as Authorization: Bearer; it is shown this once. None where a cookie has it"`
}

// Caller is who asks, as the server has let it in.
type Caller struct {
	ID        string    `json:"id,omitempty" doc:"of the token or session; none for who was let in without"`
	Name      string    `json:"name,omitempty"`
	Tenant    string    `json:"tenant"`
	Parent    string    `json:"parent,omitempty" doc:"the token of which it is a session"`
	Scopes    []string  `json:"scopes"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
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
