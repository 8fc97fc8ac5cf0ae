// Package cronjob reads CronJobs of Kubernetes (batch/v1) as jobs: manifests that people wrote, and what "kubectl get cronjob
// -o yaml" or "-o json" gives. docs/migrate-kubernetes.md says for people what becomes of what.
//
// A CronJob starts pods, and Belfry starts none. So whoever imports says what a run does: start a Job of the CronJob that
// stays in the cluster (Kubectl), start the container's command on the worker's host (Process), or call an address.
//
// Nothing is dropped in silence: each object gives a job or a note, and each field that means something to the way chosen
// is kept or noted. Under Kubectl the pod's own fields stay with the CronJob in the cluster, which goes on using them.
//
// The fields: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/cron-job-v1/. What the controller does
// with them: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/. Its reader of schedules is
// https://pkg.go.dev/github.com/robfig/cron/v3, whose dialect differs from Belfry's in places that cron.go names.
package cronjob
