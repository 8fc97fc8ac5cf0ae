package invalid_test

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func TestNearest(t *testing.T) {
	known := []string{"cron", "every", "at", "timezone", "retry", "report", "Überweisung"}
	for given, want := range map[string]string{
		"crom": "cron", "corn": "cron", "CRON": "cron", "crn": "cron", "timezon": "timezone", "time_zone": "timezone", "reprot": "report",
		"evrey": "every", "überweisung": "Überweisung",
		"": "", "a": "", "it": "", "zone": "", "schedule": "", strings.Repeat("timezone", 100): "", "\xff\xfe": "",
	} {
		if got := invalid.Nearest(given, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", given, got, want)
		}
	}
	if got := invalid.Nearest("cron", nil); got != "" {
		t.Errorf("nearest of nothing: %q", got)
	}
}
