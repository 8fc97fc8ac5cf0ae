package target

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// signingPrefix begins a signing key as Standard Webhooks writes it.
const signingPrefix = "whsec_"

// Bounds of a signing key in bytes, by Standard Webhooks.
const leastSigningKey, longestSigningKey = 24, 64

// add puts the headers of Standard Webhooks 1.0.0 beside the others. The timestamp is that of the attempt, so that a receiver
// can refuse what is replayed later; the ID stays the same on every attempt.
func (s *Sign) add(headers map[string]string, call Call, now time.Time, known revealed) error {
	id, timestamp := webhookID(call.Run), strconv.FormatInt(now.Unix(), 10)
	var signatures []string
	for _, name := range []string{s.Secret, s.Previous} {
		if name == "" {
			continue
		}
		key, ok := signingKey(known.values[name])
		if !ok {
			return failed(KindSecret, nil, "%s is no signing key: want %s and the base64 form of %d to %d bytes", name, signingPrefix, leastSigningKey, longestSigningKey)
		}
		signatures = append(signatures, "v1,"+signature(key, id, timestamp, call.Payload))
	}
	headers["Webhook-Id"], headers["Webhook-Timestamp"], headers["Webhook-Signature"] = id, timestamp, strings.Join(signatures, " ")
	return nil
}

// webhookID is the run's ID without dots, which separate the parts of what is signed: with one in the ID, a receiver could be
// made to take a part of it for the timestamp. No ID holds a percent sign, so two runs never share one.
func webhookID(run string) string { return strings.ReplaceAll(run, ".", "%2E") }

func signature(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signingKey reads a key in the standard's form; its prefix may be missing, as receivers' libraries allow.
func signingKey(text string) ([]byte, bool) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, signingPrefix))
	return key, err == nil && len(key) >= leastSigningKey && len(key) <= longestSigningKey
}
