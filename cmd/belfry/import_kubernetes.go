package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/cronjob"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

func (c *cli) importKubernetes() *cobra.Command {
	var as, url, zone, namespace string
	cmd := c.importOf(&cobra.Command{
		Use:   "kubernetes FILE",
		Short: "Make jobs of CronJobs; importing them again changes nothing",
		Long: `Make jobs of Kubernetes CronJobs, from YAML or JSON: manifests, or what "kubectl get cronjobs -o yaml" prints. What cannot be
kept is listed with lines and reasons, and a CronJob that is lost makes the command end with code 1 unless it was a dry run. A
file without any object of Kubernetes makes it end with code 1 in any case.
docs/migrate-kubernetes.md says what becomes of what, and how to switch over.

Belfry starts no pods. What a run does instead:
  --as kubectl       (the default) it starts a Job of the CronJob, and ends as that does. The CronJob stays in the cluster,
                     suspended; the worker needs kubectl and the right to create jobs.
  --as exec          it starts the container's command on the worker's host, without the image.
  --target-url URL   it calls URL, in which {namespace} and {name} are replaced.

With kubectl and exec the worker must run with --allow-exec.`,
		Example: `  kubectl get cronjobs -A -o yaml > cronjobs.yaml
  belfry import kubernetes cronjobs.yaml --dry-run
  belfry import kubernetes cronjobs.yaml --paused --label team=billing
  belfry import kubernetes cronjobs.yaml --target-url https://jobs.example.org/{namespace}/{name} --dry-run -o yaml`,
	}, func(name string, text []byte) (jobfile.Taken, error) {
		cfg := cronjob.Config{Way: cronjob.Way(as), URL: url, Zone: zone, Namespace: namespace}
		switch {
		case url != "" && as != "":
			return jobfile.Taken{}, misused("--as and --target-url exclude each other")
		case url != "":
			cfg.Way = cronjob.Call
		case as == "":
			cfg.Way = cronjob.Kubectl
		case cfg.Way != cronjob.Kubectl && cfg.Way != cronjob.Process:
			return jobfile.Taken{}, misused("--as %q: want kubectl or exec", as)
		}
		if err := knownZone(zone); err != nil {
			return jobfile.Taken{}, err
		}
		file, err := cronjob.Read(name, text, cfg)
		return jobfile.Taken{Jobs: file.Jobs, Notes: file.Notes}, err
	})
	cmd.Flags().StringVar(&as, "as", "", "`WHAT` a run does: kubectl or exec")
	cmd.Flags().StringVar(&url, "target-url", "", "`URL` that a run calls, with {namespace} and {name}")
	cmd.Flags().StringVar(&zone, "timezone", "", "IANA name of the `ZONE` of the cluster's controller, for CronJobs without timeZone, or with one that is not known; UTC by default")
	cmd.Flags().StringVar(&namespace, "namespace", "default", "`NAMESPACE` of CronJobs that name none")
	return cmd
}

// knownZone refuses a --timezone that there is not.
func knownZone(name string) error {
	if name == "" {
		return nil
	}
	if _, err := schedule.LoadZone(name); err != nil {
		return misused("--timezone: %s", strings.TrimPrefix(err.Error(), "timezone: "))
	}
	return nil
}
