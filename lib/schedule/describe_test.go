package schedule

import (
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	start, end := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 3, 1, 0, 0, 0, 5e6, time.UTC)
	cron := func(expr string) Spec { return Spec{Cron: expr} }
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Cron: "30 9 * * 1-5", Timezone: "Europe/Berlin"}, "At 09:30, Monday to Friday, Europe/Berlin"},
		{cron("* * * * *"), "Every minute, UTC"},
		{cron("* * * * * *"), "Every second, UTC"},
		{cron("*/5 * * * *"), "Every 5 minutes, UTC"},
		{cron("*/10 * * * * *"), "Every 10 seconds, UTC"},
		{cron("*/7 * * * *"), "Every 7th minute from 0 to 56, UTC"},
		{cron("5,20,35 * * * *"), "At minutes 5, 20 and 35, UTC"},
		{cron("0-29 * * * *"), "Every minute from 0 to 29, UTC"},
		{cron("15 30 * * * *"), "At second 15 at minute 30, UTC"},
		{cron("@hourly"), "Every hour, UTC"},
		{cron("30 * * * *"), "Every hour at minute 30, UTC"},
		{cron("0 */2 * * *"), "Every 2 hours, UTC"},
		{cron("10 */2 * * *"), "Every 2 hours at minute 10, UTC"},
		{cron("0 9-17 * * *"), "Every hour from 09:00 to 17:59, UTC"},
		{cron("*/15 9-17 * * 1-5"), "Every 15 minutes from 09:00 to 17:59, Monday to Friday, UTC"},
		{cron("*/15 */2 * * *"), "Every 15 minutes of every 2 hours, UTC"},
		{cron("*/20 1,5,7 * * *"), "Every 20 minutes in hours 1, 5 and 7, UTC"},
		{cron("0,30 8,20 * * *"), "At 08:00, 08:30, 20:00 and 20:30, UTC"},
		{cron("5 30 9 * * *"), "At 09:30:05, UTC"},
		{cron("0 0 1,15 * *"), "At 00:00, on days 1 and 15 of the month, UTC"},
		{cron("0 0 */2 * *"), "At 00:00, on every 2nd day from 1 to 31 of the month, UTC"},
		{cron("0 0 13 * 5"), "At 00:00, on day 13 of the month or Friday, UTC"},
		{cron("0 0 13 * */2"), "At 00:00, on day 13 of the month, only if Tuesday, Thursday, Saturday and Sunday, UTC"},
		{cron("0 0 1-31 * 5"), "At 00:00, UTC"},
		{cron("0 12 L,L-1,L-3,LW,15W * *"), "At 12:00, on the last day, the day before the last, 3 days before the last, the working day nearest to day 15 and the last working day of the month, UTC"},
		{cron("0 0 * * 5L,1#2"), "At 00:00, the 2nd Monday of the month and the last Friday of the month, UTC"},
		{cron("0 0 * 6-8,12 6,7"), "At 00:00, Saturday and Sunday, in June to August and December, UTC"},
		{cron("@yearly"), "At 00:00, on day 1 of the month, in January, UTC"},
		{Spec{Every: Duration(5 * time.Minute)}, "Every 5 minutes"},
		{Spec{Every: Duration(time.Hour)}, "Every hour"},
		{Spec{Every: Duration(26*time.Hour + time.Second), Phase: Duration(time.Minute)}, "Every 1d2h1s, shifted by 1m"},
		{Spec{Every: Duration(1500 * time.Millisecond)}, "Every 1.5s"},
		{Spec{At: &end}, "Once, at 2027-03-01T00:00:00.005Z"},
		{Spec{Cron: "@daily", Start: &start, End: &end, Jitter: Duration(30 * time.Second)},
			"At 00:00, UTC, from 2026-03-01T00:00:00Z, until 2027-03-01T00:00:00.005Z, spread over 30 seconds"},
	} {
		s, err := c.spec.Compile()
		if err != nil {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		if got := s.Describe(); got != c.want {
			t.Errorf("%s: got  %s\n\twant %s", c.spec.Cron, got, c.want)
		}
	}
}
