package wire

import "time"

// SecretRequest sets a secret.
type SecretRequest struct {
	Value string `json:"value" minLength:"1" maxLength:"32768" writeOnly:"true" doc:"what the secret holds, up to 32 KB in UTF-8; no answer ever holds it"`
}

// Secret is what may be shown of a secret.
type Secret struct {
	Name      string    `json:"name" doc:"what jobs call it by"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at" doc:"when it was last set"`
	Key       string    `json:"key" doc:"ID of the key that it is encrypted under"`
	Rotated   bool      `json:"rotated" doc:"that key is the newest"`
}

// SecretPage is a page of secrets, by name.
type SecretPage struct {
	Items []Secret `json:"items"`
	Next  string   `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// KeyRotation is the answer to a change of keys.
type KeyRotation struct {
	Encrypted int `json:"encrypted" doc:"how many secrets were encrypted again; the others were under the newest key already"`
}
