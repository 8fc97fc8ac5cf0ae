package takeover

import (
	"bytes"
	"fmt"
	"regexp"
)

// A form is a kind of text that somebody may take for one that Belfry imports.
type form struct {
	what  string
	looks *regexp.Regexp
}

// forms are tried in this order: what stands inside of another one comes after it.
var forms = []form{
	{"a Terraform file", regexp.MustCompile(`(?m)^\s*(resource|data|module|variable|provider|output)\s+"[^"]+"(\s+"[^"]+")?\s*\{|^(terraform|locals|moved|import)\s*\{|"terraform_version"\s*:|\A\s*\{(?s:.*)"(resource|data)"\s*:\s*\{\s*"(aws|kubernetes|google|azurerm)_\w+"\s*:\s*[{[]`)},
	{"a CloudFormation or SAM template", regexp.MustCompile(`(?m)\bAWSTemplateFormatVersion\b|\bType["']?\s*:\s*["']?AWS::|\bAWS::Serverless\b`)},
	{"a table that kubectl printed", regexp.MustCompile(`(?m)^\s*(NAMESPACE\s+)?NAME\s+(SCHEDULE|COMPLETIONS|STATUS|READY|AGE|DESIRED|DATA)\b|^\S+[ \t].*[ \t](True|False)[ \t]+[0-9]+[ \t]+(<none>|([0-9]+[smhdy])+)[ \t]+([0-9]+[smhdy])+([ \t]|\r?$)`)},
	{"what kubectl describe printed", regexp.MustCompile(`(?m)^Name:\s+\S+\s*\nNamespace:\s+\S+`)},
	{"a table that the AWS command line printed", regexp.MustCompile(`(?m)^\|\s+(ListSchedules|GetSchedule|ListRules)\b|^-{10,}\n\|`)},
	{"text that the AWS command line printed", regexp.MustCompile(`(?m)^(SCHEDULES|RULES|TARGET|FLEXIBLETIMEWINDOW)\t|^arn:aws[a-z-]*:scheduler:\S+\t|^\S+\tarn:aws[a-z-]*:scheduler:`)},
	{"what Python prints of a value, which is no JSON (json.dumps(value, default=str) writes it)", regexp.MustCompile(`\A\s*\[?\{'`)},
	{"a systemd timer", regexp.MustCompile(`(?m)^\[Timer\]|^OnCalendar\s*=`)},
	{"a web page", regexp.MustCompile(`(?i)\A\s*(<!doctype html|<html)`)},
	{"an error of a command line", regexp.MustCompile(`(?m)\A\s*(error:|Error from server|Unable to connect|The connection to the server|An error occurred \(|no crontab for |usage: |aws: error)`)},
	{"a workflow of GitHub", regexp.MustCompile(`(?m)^(["']?on["']?|jobs):[^\n]*\n(?:.*\n)*?\s*(-\s*cron:|runs-on:)`)},
	{formKubernetes, regexp.MustCompile(`(?m)^\s*["']?apiVersion["']?\s*:\s*\S`)},
	{formEventBridge, regexp.MustCompile(`(?m)["']?\bScheduleExpression["']?\s*:|arn:aws[a-z-]*:scheduler:`)},
	{formCrontab, regexp.MustCompile(`(?m)^\s*([-0-9*/,]+[ \t]+){4}\S+[ \t]+\S|^\s*@(reboot|hourly|daily|weekly|monthly|yearly|annually|midnight)[ \t]+\S`)},
}

// The forms that Belfry imports, as Unlike names them.
const (
	formKubernetes  = "objects of Kubernetes (belfry import kubernetes)"
	formEventBridge = "schedules of EventBridge (belfry import eventbridge)"
	formCrontab     = "a crontab (belfry import crontab)"
)

// How each form is had that Belfry imports.
const (
	HowKubernetes  = "give YAML or JSON of CronJobs: what \"kubectl get cronjobs --all-namespaces -o yaml\" prints"
	HowEventBridge = "give what \"aws scheduler get-schedule --name NAME\" prints for each schedule that \"aws scheduler list-schedules\" names, as JSON"
	HowCrontab     = "give what \"crontab -l\" prints, or a file such as /etc/crontab with --system"
)

// Looks says what a text looks like, where that is something known and not what was asked for, which how names: one of the constants
// above. "" is for nothing known.
func Looks(text []byte, how string) string {
	own := map[string]string{HowKubernetes: formKubernetes, HowEventBridge: formEventBridge, HowCrontab: formCrontab}[how]
	for _, f := range forms {
		if f.looks.Match(text) {
			if f.what == own {
				return ""
			}
			return f.what
		}
	}
	return ""
}

// Unlike is the error of a text in which nothing is understood: what it looks like, and how to get what can be read.
func Unlike(text []byte, how string) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf("it is empty; %s", how)
	}
	if what := Looks(text, how); what != "" {
		return fmt.Errorf("nothing in it is understood: it looks like %s; %s", what, how)
	}
	return fmt.Errorf("nothing in it is understood; %s", how)
}

// Told says which of the forms a text has that Belfry imports: HowKubernetes, HowEventBridge or HowCrontab. For another one that is known it is
// "" and what that is; for what nobody knows both are "".
func Told(text []byte) (how, what string) {
	for _, f := range forms {
		if f.looks.Match(text) {
			if how = map[string]string{formKubernetes: HowKubernetes, formEventBridge: HowEventBridge, formCrontab: HowCrontab}[f.what]; how != "" {
				return how, ""
			}
			return "", f.what
		}
	}
	return "", ""
}
