package cronjob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// work gives what a run does.
func (c *cronJob) work() error {
	switch c.cfg.Way {
	case Kubectl:
		c.kubectl()
		return nil
	case Process:
		if err := c.once(); err != nil {
			return err
		}
		return c.process()
	default:
		if err := c.once(); err != nil {
			return err
		}
		url := strings.NewReplacer("{namespace}", c.namespace, "{name}", c.name).Replace(c.cfg.URL)
		c.def.Target.HTTP = &target.HTTP{URL: url}
		return nil
	}
}

// follow starts a Job of a CronJob and ends as it does, with its log. The Job is named after the run, so that another attempt
// of the same run finds the Job of the one before it rather than starting the work twice. It ends with 3 when the Job failed,
// which Kubernetes has tried as often as it should be.
const follow = `name=$2-$(printf %s "$BELFRY_RUN" | cksum | cut -d ' ' -f 1)
said=$(kubectl create job "$name" --namespace "$1" --from "cronjob/$2" 2>&1) || case $said in
*"already exists"*) ;;
*) echo "$said"; exit 1 ;;
esac
echo "$said"
while :; do
  now=$(kubectl get job "$name" --namespace "$1" --ignore-not-found \
    --output 'jsonpath=is:{.status.conditions[?(@.status=="True")].type}') || exit 1
  case $now in
  *Complete*) kubectl logs "job/$name" --namespace "$1" --all-containers; exit 0 ;;
  *Failed*) kubectl logs "job/$name" --namespace "$1" --all-containers; echo "the Job failed"; exit 3 ;;
  "") echo "the Job was removed before its end was seen"; exit 3 ;;
  esac
  sleep 5
done`

const jobFailed = 3

// slack is how much longer than its Job a run may take: pods wait for their place.
const slack = 5 * time.Minute

func (c *cronJob) kubectl() {
	c.def.Target.Exec = &target.Exec{Argv: []string{"/bin/sh", "-c", follow, "kubectl", c.namespace, c.name}, PermanentExitCodes: []int{jobFailed}}
	c.def.Timeout = schedule.Duration(job.MaxTimeout)
	if seconds, ok := c.job.Whole("activeDeadlineSeconds"); ok && seconds > 0 {
		c.def.Timeout = schedule.Duration(min(durationOf(seconds)+slack, job.MaxTimeout))
	}
	if seconds, ok := c.job.Whole("ttlSecondsAfterFinished"); ok && seconds < 60 {
		c.say("ttlSecondsAfterFinished %d: a Job that is removed before its end was seen makes its run fail; want 60 or more", seconds)
	}
}

// The backoff of a Job's pods: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy.
const (
	defaultBackoffLimit = 6
	firstBackoff        = 10 * time.Second
	longestBackoff      = 6 * time.Minute
)

// once reads what a Job says about its pods, for a run that takes the place of one of them.
func (c *cronJob) once() error {
	for _, field := range []string{"parallelism", "completions"} {
		if n, ok := c.job.Whole(field); ok && n != 1 {
			return fmt.Errorf("spec.jobTemplate.spec.%s is %d: a run does its work once; --as kubectl leaves it to the cluster", field, n)
		}
	}
	again, ok := c.job.Whole("backoffLimit")
	if !ok {
		again = defaultBackoffLimit
	}
	attempts := max(again, 0) + 1
	if again >= job.MaxAttempts {
		attempts = job.MaxAttempts
		c.say("backoffLimit %d: tried %d times, the most there is", again, attempts)
	}
	c.def.Retry = job.Retry{MaxAttempts: int(attempts), Initial: schedule.Duration(firstBackoff), Factor: 2, Max: schedule.Duration(longestBackoff)}
	if c.cfg.Way == Process { // pods have no bound of their own; an answer that is waited for has Belfry's
		c.def.Timeout = schedule.Duration(job.MaxTimeout)
	}
	if seconds, ok := c.job.Whole("activeDeadlineSeconds"); ok {
		c.def.Timeout = schedule.Duration(min(durationOf(seconds), job.MaxTimeout))
		if attempts > 1 {
			c.say("activeDeadlineSeconds %d bounds each attempt; in Kubernetes it bounds all of them together", seconds)
		}
	}
	if seconds, ok := c.job.Whole("ttlSecondsAfterFinished"); ok {
		keep := min(max(durationOf(seconds), job.MinRetention), job.MaxRetention)
		c.def.Retention = schedule.Duration(keep)
		if keep != durationOf(seconds) {
			c.say("ttlSecondsAfterFinished %d: runs are kept for %s", seconds, c.def.Retention)
		}
	}
	c.job.Skip("template", "completionMode", "manualSelector", "suspend")
	c.unknown("spec.jobTemplate.spec", c.job)
	return nil
}

// process makes a process of the one container that the pod has.
func (c *cronJob) process() error {
	containers := c.pod.Objects("containers")
	if len(containers) != 1 || len(c.pod.Objects("initContainers")) > 0 {
		return errors.New("its pod has more or less than one container, and a run starts one process; --as kubectl leaves it to the cluster")
	}
	in := containers[0]
	name := in.Text("name")
	words := in.Texts("command")
	if len(words) == 0 {
		return fmt.Errorf("container %s has no command, so that its image says what runs; --as kubectl leaves it to the cluster, or write the command into it", name)
	}
	env := c.environment(in)
	words = append(words, in.Texts("args")...)
	for i := range words {
		text, err := expand(words[i], env)
		if err != nil {
			return fmt.Errorf("container %s: %w", name, err)
		}
		words[i] = text
	}
	c.def.Target.Exec = &target.Exec{Argv: words, Env: env, Dir: in.Text("workingDir")}
	if image := in.Text("image"); image != "" {
		c.say("image %s is not used: the command runs on the worker's host as it stands, and must be there", image)
	}
	in.Skip("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")
	c.unknown("container "+name, in)
	// What Kubernetes fills in where nothing is said, and what only tells how pods are started again or placed.
	c.pod.Skip("restartPolicy", "dnsPolicy", "schedulerName", "terminationGracePeriodSeconds", "imagePullSecrets", "nodeSelector",
		"affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "enableServiceLinks")
	if context := c.pod.Object("securityContext"); len(context.Left()) == 0 {
		c.pod.Skip("securityContext")
	}
	c.unknown("pod", c.pod)
	return nil
}

// environment keeps texts and references to Secrets. A key of a Secret becomes a secret of Belfry's that somebody has to set.
func (c *cronJob) environment(in *takeover.Object) map[string]target.Value {
	env := map[string]target.Value{}
	for _, variable := range in.Objects("env") {
		name := variable.Text("name")
		if !variable.Has("valueFrom") {
			text, err := expand(variable.Text("value"), env)
			if err != nil {
				c.say("variable %s is not kept: %s", name, err)
				continue
			}
			env[name] = target.Text(text)
			continue
		}
		from := variable.Object("valueFrom")
		ref := from.Object("secretKeyRef")
		secret := ref.Text("name") + "." + ref.Text("key")
		ref.Bool("optional")
		if !from.Has("secretKeyRef") || !target.ValidSecretName(secret) {
			c.say("variable %s is not kept: only a value and a secretKeyRef mean something outside of a cluster", name)
			continue
		}
		env[name] = target.Secret(secret)
		c.say("variable %s is the secret %s: \"belfry secret set %s\" before the job fires", name, secret, secret)
	}
	if len(env) == 0 {
		return nil
	}
	return env
}

// reference is $(NAME), and $$ is a dollar sign that begins none.
var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)`)

// expand replaces references to variables as Kubernetes does: one to a variable that there is not stays as it is.
func expand(text string, env map[string]target.Value) (string, error) {
	var err error
	text = reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		value, ok := env[found[2:len(found)-1]]
		switch {
		case !ok:
			return found
		case value.Secret != "":
			err = fmt.Errorf("%s is a secret, which only the process itself may read from its environment", found)
		}
		return value.Text
	})
	return text, err
}
