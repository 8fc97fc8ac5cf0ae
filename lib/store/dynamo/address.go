package dynamo

import (
	"net/url"
	"regexp"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Address says which table is meant.
type Address struct {
	Table    string
	Region   string // "" for that of the AWS configuration
	Endpoint string // of an emulator; "" for that of AWS
}

var tableNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

const wantURL = `dynamodb://TABLE, with ?region=… and &endpoint=http://… where they are not the usual ones; TABLE is 3 to 255 letters, digits, ".", "-" and "_"`

// ParseURL reads an address such as dynamodb://belfry?region=eu-west-1&endpoint=http://127.0.0.1:8000.
func ParseURL(text string) (Address, error) {
	wrong := invalid.Field("store", text, wantURL)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "dynamodb" || u.Opaque != "" || u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return Address{}, wrong
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !tableNames.MatchString(u.Host) {
		return Address{}, wrong
	}
	for name, values := range query {
		if name != "region" && name != "endpoint" || len(values) != 1 {
			return Address{}, wrong
		}
	}
	a := Address{Table: u.Host, Region: query.Get("region"), Endpoint: query.Get("endpoint")}
	if e, err := url.Parse(a.Endpoint); a.Endpoint != "" && (err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "") {
		return Address{}, invalid.Field("store endpoint", a.Endpoint, "an address such as http://127.0.0.1:8000")
	}
	return a, nil
}
