package cronjob

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

// schedule reads spec.schedule in its zone. The zone is timeZone, or one that an older cluster still lets stand in front of the
// expression, or the controller's.
func (c *cronJob) schedule(meta *takeover.Object) (*schedule.Spec, error) {
	expression, zone := strings.TrimSpace(c.spec.Text("schedule")), c.spec.Text("timeZone")
	if expression == "" {
		return nil, fmt.Errorf("spec.schedule: missing, want an expression such as \"30 9 * * 1-5\"")
	}
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if rest, ok := strings.CutPrefix(expression, prefix); ok {
			named, after, _ := strings.Cut(rest, " ")
			if zone != "" && zone != named {
				return nil, fmt.Errorf("spec.schedule: it names the zone %s, and timeZone names %s", named, zone)
			}
			zone, expression = named, strings.TrimSpace(after)
		}
	}
	if rest, ok := strings.CutPrefix(expression, "@every "); ok {
		return c.every(rest, meta)
	}
	switch fields := strings.Fields(expression); len(fields) {
	case 6:
		return nil, fmt.Errorf("spec.schedule: got %q, six fields, which Kubernetes refuses: write %s", expression, takeover.SixFields(fields))
	case 7:
		return nil, fmt.Errorf("spec.schedule: got %q, seven fields, which Kubernetes refuses: write %q, without seconds and year", expression, strings.Join(fields[1:6], " "))
	}
	if err := zoned(zone); err != nil {
		if c.cfg.Zone == "" {
			return nil, err
		}
		c.say("the time zone %q is not known; taken for %s, as --timezone has it", zone, c.cfg.Zone)
		zone = c.cfg.Zone
	}
	if zone == "" {
		if zone = c.cfg.Zone; zone == "" {
			zone = "UTC"
			c.say("it has no timeZone, so that the cluster's controller chooses; taken for UTC, as most are; --timezone names another")
		}
	}
	kept, notes := takeover.Steps(expression)
	for _, note := range notes {
		c.say("schedule: %s", note)
	}
	return &schedule.Spec{Cron: translate(kept), Timezone: zone}, nil
}

// zoned refuses a zone that has no IANA name, which Kubernetes refuses too.
func zoned(zone string) error {
	if zone == "" {
		return nil
	}
	if _, err := schedule.LoadZone(zone); err != nil {
		return fmt.Errorf("the time zone: %s; correct it, or give --timezone", strings.TrimPrefix(err.Error(), "timezone: "))
	}
	return nil
}

// every is an interval, which the controller counts from the last start, or else from when the CronJob was made.
func (c *cronJob) every(text string, meta *takeover.Object) (*schedule.Spec, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("spec.schedule: got @every %s, want a duration such as 1h30m", text)
	}
	d = max(d.Truncate(time.Second), time.Second)
	spec := &schedule.Spec{Every: schedule.Duration(d)}
	from := c.o.Object("status").Text("lastScheduleTime")
	if from == "" {
		from = meta.Text("creationTimestamp")
	}
	if at, err := takeover.Date(from); err == nil && at.Unix() >= 0 {
		spec.Phase = schedule.Duration(time.Duration(at.Unix()%int64(d/time.Second)) * time.Second)
		return spec, nil
	}
	c.say("@every %s: neither status.lastScheduleTime nor metadata.creationTimestamp says since when; counted from 1970 in UTC", text)
	return spec, nil
}

// translate writes an expression in Belfry's dialect. The two agree but for this:
//
//   - ? is *.
//   - Whether a day must match both fields of days or either one. To the controller a field is a star when a part of it is *,
//     ? or */1; to Belfry, as to Vixie's cron, when it begins with one. So */2 is written as a range, and "1,*" as *.
//   - Saturday ends the controller's week, so that 5/1 are two days; Belfry's field goes on to 7.
func translate(expression string) string {
	fields := strings.Fields(expression)
	if len(fields) != 5 {
		return expression // a macro, or something to be refused
	}
	for i := range fields {
		fields[i] = strings.ReplaceAll(fields[i], "?", "*")
	}
	fields[2], fields[4] = days(fields[2], "1-31"), days(fields[4], "0-6")
	return strings.Join(fields, " ")
}

func days(field, all string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		values, step, stepped := strings.Cut(part, "/")
		switch {
		case values == "*" && (!stepped || step == "1"):
			return "*"
		case values == "*":
			parts[i] = all + "/" + step
		case stepped && !strings.Contains(values, "-"):
			_, last, _ := strings.Cut(all, "-")
			parts[i] = values + "-" + last + "/" + step
		}
	}
	return strings.Join(parts, ",")
}
