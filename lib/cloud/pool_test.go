package cloud_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cloud"
)

func TestParsePools(t *testing.T) {
	for text, want := range map[string][]cloud.Pool{
		"":                        {{Name: "default"}},
		"gpu=6h":                  {{Name: "default"}, {Name: "gpu", Longest: 6 * time.Hour}},
		"default=14m,gpu=6h, m_2": {{Name: "default", Longest: 14 * time.Minute}, {Name: "gpu", Longest: 6 * time.Hour}, {Name: "m_2"}},
		"mail,default=14m":        {{Name: "mail"}, {Name: "default", Longest: 14 * time.Minute}},
	} {
		if got, err := cloud.ParsePools(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q gave %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"gpu,gpu=6h":  "each queue once",
		"a b":         "names of queues",
		"gpu=":        "a longest timeout from 1s to 1d",
		"gpu=2 weeks": "a longest timeout from 1s to 1d",
		"gpu=10d":     "a longest timeout from 1s to 1d",
		"=6h":         "names of queues",
	} {
		if got, err := cloud.ParsePools(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %+v, %v, want an error that says %q", text, got, err, want)
		}
	}
}
