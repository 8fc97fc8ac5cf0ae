package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/aws/aws-xray-sdk-go/v2/header"
)

// Context names a span of a trace, for those who continue it. The zero Context names none.
type Context struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool // the trace is recorded
}

// IsZero tells whether no span is named.
func (c Context) IsZero() bool { return c.Trace == [16]byte{} || c.Span == [8]byte{} }

// Named is the span of the same trace that goes by a name. Whoever knows the name knows the span, before it is recorded and without asking
// anybody. Of the zero Context it is zero.
func (c Context) Named(name string) Context {
	if c.IsZero() {
		return Context{}
	}
	sum := sha256.Sum256(append(c.Trace[:], name...))
	copy(c.Span[:], sum[:])
	return c
}

// ID is the trace as text, 32 hexadecimal digits; "" for none.
func (c Context) ID() string {
	if c.Trace == [16]byte{} {
		return ""
	}
	return hex.EncodeToString(c.Trace[:])
}

// Traceparent is the header of W3C Trace Context; "" for none.
func (c Context) Traceparent() string {
	if c.IsZero() {
		return ""
	}
	var text [55]byte
	copy(text[:], "00-")
	hex.Encode(text[3:], c.Trace[:])
	text[35] = '-'
	hex.Encode(text[36:], c.Span[:])
	copy(text[52:], "-00")
	if c.Sampled {
		text[54] = '1'
	}
	return string(text[:])
}

// XRay is the header X-Amzn-Trace-Id, and the attribute AWSTraceHeader of SQS; "" for none.
func (c Context) XRay() string {
	if c.IsZero() {
		return ""
	}
	sampled := header.NotSampled
	if c.Sampled {
		sampled = header.Sampled
	}
	return header.Header{TraceID: c.xrayID(), ParentID: hex.EncodeToString(c.Span[:]), SamplingDecision: sampled}.String()
}

// String is the traceparent, for people.
func (c Context) String() string { return c.Traceparent() }

func (c Context) xrayID() string {
	id := c.ID()
	return "1-" + id[:8] + "-" + id[8:]
}

// Origin is what came with a request: the span that it is part of. An X-Ray header may name a trace and no span, and may leave it open
// whether that is recorded.
type Origin struct {
	Context
	Open bool
}

// Parse reads a traceparent; false for what is none. Later versions of the header may say more behind what is read here.
func Parse(text string) (Origin, bool) {
	var o Origin
	var version, flags [1]byte
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
		!digits(version[:], text[:2]) || !digits(o.Trace[:], text[3:35]) || !digits(o.Span[:], text[36:52]) || !digits(flags[:], text[53:55]) ||
		version[0] == 0xff || version[0] == 0 && len(text) != 55 || len(text) > 55 && text[55] != '-' || o.IsZero() {
		return Origin{}, false
	}
	o.Sampled = flags[0]&1 != 0
	return o, true
}

// digits reads lower-case hexadecimal digits.
func digits(into []byte, text string) bool {
	_, err := hex.Decode(into, []byte(text))
	return err == nil && strings.ToLower(text) == text
}

// ParseXRay reads an X-Ray header such as "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"; false for what
// names no trace.
func ParseXRay(text string) (Origin, bool) {
	said := header.FromString(text)
	o := Origin{Open: said.SamplingDecision != header.Sampled && said.SamplingDecision != header.NotSampled}
	version, rest, _ := strings.Cut(said.TraceID, "-")
	began, random, _ := strings.Cut(rest, "-")
	if version != "1" || len(began) != 8 || len(random) != 24 || !digits(o.Trace[:], began+random) || o.Trace == [16]byte{} {
		return Origin{}, false
	}
	if len(said.ParentID) != 16 || !digits(o.Span[:], said.ParentID) {
		o.Span = [8]byte{}
	}
	o.Sampled = said.SamplingDecision == header.Sampled
	return o, true
}

// MarshalBinary gives 25 bytes, in which a record stores the context.
func (c Context) MarshalBinary() ([]byte, error) {
	out := make([]byte, 25)
	copy(out, c.Trace[:])
	copy(out[16:], c.Span[:])
	if c.Sampled {
		out[24] = 1
	}
	return out, nil
}

// UnmarshalBinary reads them.
func (c *Context) UnmarshalBinary(stored []byte) error {
	if len(stored) < 25 {
		return errors.New("a trace of less than 25 bytes")
	}
	copy(c.Trace[:], stored)
	copy(c.Span[:], stored[16:])
	c.Sampled = stored[24]&1 != 0
	return nil
}
