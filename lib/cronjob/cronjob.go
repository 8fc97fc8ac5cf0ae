package cronjob

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

// Way is what a run does.
type Way string

const (
	// Kubectl starts a Job of the CronJob, which stays in the cluster, and follows it to its end.
	Kubectl Way = "kubectl"
	// Process starts the container's command on the worker's host.
	Process Way = "exec"
	// Call calls an address.
	Call Way = "url"
)

// Config says how CronJobs become jobs.
type Config struct {
	Way       Way
	URL       string // of a Call: an address in which {namespace} and {name} are replaced
	Zone      string // IANA name of the zone that the cluster's controller goes by; "" where it is not known, which is taken for UTC
	Namespace string // of objects that name none; "" is "default"
}

// Read reads a text whose name tells YAML from JSON as manifest.Read has it. It fails for a text that is neither, and for one in
// which nothing is an object of Kubernetes; it says then what that looks like. A document that cannot be read among others that can is
// lost with a note.
func Read(name string, text []byte, cfg Config) (takeover.File, error) {
	if cfg.Namespace == "" {
		cfg.Namespace = "default"
	}
	documents, err := manifest.ReadEach(name, text)
	switch {
	case err != nil && templated(string(text)) && takeover.Looks(text, takeover.HowKubernetes) == "":
		return takeover.File{}, fmt.Errorf("%w: it is a template of Helm, %s", err, renderIt)
	case err != nil && takeover.Looks(text, takeover.HowKubernetes) != "":
		return takeover.File{}, takeover.Unlike(text, takeover.HowKubernetes)
	case err != nil:
		return takeover.File{}, err
	}
	r := reader{cfg: cfg, lines: map[string]int{}}
	for _, d := range documents {
		if d.Err != nil {
			r.unread(d)
			continue
		}
		r.object(d.Value, "")
	}
	if !r.understood {
		return takeover.File{}, takeover.Unlike(text, takeover.HowKubernetes)
	}
	return r.file, nil
}

// renderIt is what to do about a template of Helm.
const renderIt = `whose {{ … }} stand for values: render it with "helm template", and import what that prints`

// templated reports whether a text has what Helm replaces.
func templated(text string) bool { return strings.Contains(text, "{{") }

type reader struct {
	cfg        Config
	lines      map[string]int // where the names stand that are taken
	understood bool           // there was an object of Kubernetes
	file       takeover.File
}

// otherKind is the line of a document that says it is of a kind that is not imported.
var otherKind = regexp.MustCompile(`(?m)^kind:[ \t]*["']?([A-Za-z]+)`)

// unread notes a document that is no YAML. It is lost unless it says that it is something else than a CronJob.
func (r *reader) unread(d manifest.Document) {
	why := d.Err.Error()
	if templated(d.Text) {
		why = "it is a template of Helm, " + renderIt
	}
	if kind := otherKind.FindStringSubmatch(d.Text); kind != nil && kind[1] != "CronJob" && !strings.HasSuffix(kind[1], "List") {
		r.file.Note(d.Line, kind[1], false, "no CronJob, and it cannot be read; left out: %s", why)
		return
	}
	r.file.Note(d.Line, "document", true, "not kept: %s", why)
}

// object reads one object, or a list of them as kubectl gives it. version is that of the list in which it stands.
func (r *reader) object(v *manifest.Value, version string) {
	if v.Kind == manifest.Array { // what jq leaves of a list
		for _, item := range v.Items {
			r.object(item, version)
		}
		return
	}
	if v.Kind != manifest.Object {
		r.file.Note(v.Line, "document", false, "got %s, want an object of Kubernetes; left out", v.Kind)
		return
	}
	o := takeover.Read(v)
	kind := o.Text("kind")
	if stands := o.Text("apiVersion"); stands != "" {
		version = stands
	}
	if kind != "" {
		r.understood = true
	}
	items := v.Member("items")
	switch {
	case strings.HasSuffix(kind, "List") && items != nil && items.Kind == manifest.Array:
		for _, item := range items.Items {
			if item.Kind == manifest.Object && item.Member("kind") == nil { // as some lists of one kind have it
				item = item.With("kind", &manifest.Value{Kind: manifest.Text, Line: item.Line, Scalar: strings.TrimSuffix(kind, "List")})
			}
			r.object(item, version)
		}
	case kind == "CronJob":
		c := &cronJob{reader: r, o: o}
		c.read(version)
	case kind == "":
		r.file.Note(v.Line, "document", false, `it has no "kind", so that it is no object of Kubernetes; left out`)
	default:
		r.file.Note(v.Line, kind+" "+o.Object("metadata").Text("name"), false, "no CronJob; left out")
	}
}

// cronJob is one CronJob that is being read.
type cronJob struct {
	*reader
	o               *takeover.Object
	namespace, name string
	spec, job, pod  *takeover.Object
	def             job.Definition
}

func (c *cronJob) about() string { return c.namespace + "/" + c.name }

func (c *cronJob) lost(format string, args ...any) {
	c.file.Note(c.o.Line(), c.about(), true, "not kept: "+format, args...)
}

func (c *cronJob) say(format string, args ...any) {
	c.file.Note(c.o.Line(), c.about(), false, format, args...)
}

func (c *cronJob) read(version string) {
	meta := c.o.Object("metadata")
	if c.name, c.namespace = meta.Text("name"), meta.Text("namespace"); c.namespace == "" {
		c.namespace = c.cfg.Namespace
	}
	c.spec = c.o.Object("spec")
	template := c.spec.Object("jobTemplate")
	template.Skip("metadata")
	c.job = template.Object("spec")
	c.pod = c.job.Object("template").Object("spec")

	before := len(c.file.Notes) // a CronJob that is lost has that note alone
	err := c.convert(version, meta)
	if wrong := c.o.Wrong(); wrong != "" {
		err = errors.New(wrong)
	}
	name := c.namespace + "." + c.name
	if err == nil && c.name != "" {
		if failed := takeover.Check(name, c.def); failed != nil {
			err = errors.New(takeover.Reasons(failed))
		}
	}
	if first, twice := c.lines[name]; err == nil && twice {
		err = fmt.Errorf("it stands in line %d, too", first)
	}
	if err == nil && c.name == "" {
		err = noName(meta)
	}
	if templated(c.about() + c.spec.Text("schedule") + c.spec.Text("timeZone")) {
		err = errors.New("it is a template of Helm, " + renderIt)
	}
	if err != nil {
		c.file.Notes = c.file.Notes[:before]
		c.lost("%s", err)
		return
	}
	c.lines[name] = c.o.Line()
	c.file.Jobs = append(c.file.Jobs, takeover.Job{Line: c.o.Line(), Name: name, Def: c.def})
}

// noName says of a CronJob without a name what gives it one.
func noName(meta *takeover.Object) error {
	if prefix := meta.Text("generateName"); prefix != "" {
		return fmt.Errorf("it has no name, only generateName %q, from which a cluster makes one: give it metadata.name, or import what \"kubectl get cronjobs -o yaml\" prints", prefix)
	}
	return errors.New("it has no name: give it metadata.name")
}

func (c *cronJob) convert(version string, meta *takeover.Object) error {
	if version != "batch/v1" && version != "batch/v1beta1" {
		return fmt.Errorf("apiVersion: got %q, want batch/v1", version)
	}
	c.def.Paused = c.spec.Bool("suspend")
	spec, err := c.schedule(meta)
	if err != nil {
		return err
	}
	if takeover.NeverFires(*spec) {
		c.say(takeover.OnDemand, spec.Cron)
		spec = nil
	}
	c.def.Schedule = spec
	c.def.Description = "CronJob " + c.about() + " of Kubernetes"
	if c.def.Paused {
		c.say("it is suspended, and the job is paused")
	}
	c.catchUp()
	c.limits()
	switch policy := c.spec.Text("concurrencyPolicy"); policy {
	case "", "Allow":
	case "Forbid":
		c.def.Overlap = job.Overlap{Policy: job.OverlapQueueLatest} // it starts the newest of those that were due meanwhile
	case "Replace":
		c.def.Overlap = job.Overlap{Policy: job.OverlapReplace}
	default:
		return fmt.Errorf("spec.concurrencyPolicy: got %q, want Allow, Forbid or Replace", policy)
	}
	c.labels(meta)
	c.spec.Skip("jobTemplate")
	if err := c.work(); err != nil {
		return err
	}
	c.unknown("spec", c.spec)
	return nil
}

// unknown notes the fields that nobody asked for.
func (c *cronJob) unknown(path string, o *takeover.Object) {
	if left := o.Left(); len(left) > 0 {
		c.say("%s: not kept: %s", path, strings.Join(left, ", "))
	}
}

// catchUp gives what the controller does after a downtime: it starts the latest fire that it missed, if that is not later than
// the deadline. The newest fire is missed only where it is older than job.NewestWithin.
func (c *cronJob) catchUp() {
	c.def.CatchUp = job.CatchUp{Mode: job.CatchUpOne}
	seconds, ok := c.spec.Whole("startingDeadlineSeconds")
	if !ok {
		return
	}
	deadline := durationOf(seconds)
	c.def.ExpiresAfter = schedule.Duration(max(job.MinExpiry, min(deadline, job.MaxRetention)))
	switch {
	case deadline <= job.NewestWithin:
		c.def.CatchUp.Mode = job.CatchUpNone
	default:
		c.def.CatchUp.Window = schedule.Duration(min(deadline, job.MaxRetention))
	}
}

// durationOf makes a duration of seconds without running over.
func durationOf(seconds int64) time.Duration {
	const most = int64(100 * 365 * 24 * time.Hour / time.Second)
	return time.Duration(max(-most, min(seconds, most))) * time.Second
}

// The limits on finished Jobs that Kubernetes fills in, which say nothing about what their owner wants.
var historyDefaults = map[string]int64{"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}

func (c *cronJob) limits() {
	for _, field := range []string{"successfulJobsHistoryLimit", "failedJobsHistoryLimit"} {
		n, ok := c.spec.Whole(field)
		if ok && n != historyDefaults[field] {
			c.say("%s %d is not kept: Belfry keeps runs for a time, %s; set retention to change it", field, n, schedule.Duration(job.DefaultRetention))
		}
	}
}

// labels keeps those of the CronJob. Belfry's names have no slash, so that app.kubernetes.io/name becomes
// app.kubernetes.io.name.
func (c *cronJob) labels(meta *takeover.Object) {
	c.def.Labels = map[string]string{"source": "kubernetes", "namespace": c.namespace}
	members := slices.Clone(meta.Object("labels").Members())
	slices.SortStableFunc(members, func(a, b manifest.Member) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range members {
		name := strings.ReplaceAll(m.Name, "/", ".")
		_, taken := c.def.Labels[name]
		refuse := func(why string) { c.say("label %s is not kept: %s", m.Name, why) }
		switch {
		case m.Value.Kind != manifest.Text:
			refuse(fmt.Sprintf("got %s, want text; Kubernetes would refuse it, too", m.Value.Kind))
		case job.ValidName(name) != nil:
			refuse("names of labels have letters, digits, dots, underscores and hyphens")
		case taken:
			refuse("the job has a label " + name + " already")
		case len(m.Value.Scalar) > job.MaxLabel:
			refuse(fmt.Sprintf("it is longer than %d bytes", job.MaxLabel))
		case len(c.def.Labels) == job.MaxLabels:
			refuse(fmt.Sprintf("a job has at most %d", job.MaxLabels))
		default:
			c.def.Labels[name] = m.Value.Scalar
		}
	}
}
