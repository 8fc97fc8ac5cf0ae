package crontab

import (
	"encoding/hex"
	"hash/fnv"
	"maps"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/takeover"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// mail is a line of MAILTO that holds for the lines below it.
type mail struct {
	line   int
	name   string // of the job that mails
	to     []string
	stands bool // the job does
}

// MailsFailures is the note on a MAILTO that is kept.
const MailsFailures = "a job mails the failures of the jobs below, where cron mails whatever a command prints: that is in its run's log"

const wantAddress = "not mailed to %s: want an address with its domain and nothing around it, such as ops@example.org"

// mailTo takes a MAILTO for the lines below. Nothing, and what names no address, mails to nobody.
func (p *parser) mailTo(number int, line, value string) {
	p.mail = nil
	var to []string
	for address := range strings.SplitSeq(value, ",") {
		address = strings.Trim(address, blanks)
		switch {
		case address == "":
		case target.ValidAddress("", address) != nil:
			p.file.Note(number, line, false, wantAddress, address)
		case len(to) == target.MaxRecipients:
			p.file.Note(number, line, false, "not mailed to %s: a mail goes to %d addresses at the most", address, target.MaxRecipients)
		default:
			to = appendNew(to, address)
		}
	}
	if len(to) > 0 {
		p.file.Note(number, line, false, "%s", MailsFailures)
		p.mail = &mail{line: number, name: mailName(to), to: to}
	}
}

// appendNew adds an address that is not there yet. Capitals make no other one.
func appendNew(to []string, address string) []string {
	for _, other := range to {
		if strings.EqualFold(other, address) {
			return to
		}
	}
	return append(to, address)
}

// mailName goes by the addresses alone, so that all who mail to the same share a job.
func mailName(to []string) string {
	h := fnv.New64a()
	for _, address := range to {
		h.Write([]byte(strings.ToLower(address)))
		h.Write([]byte{0})
	}
	local, _, _ := strings.Cut(strings.ToLower(to[0]), "@")
	local = strings.Trim(notInNames.ReplaceAllString(local, "-"), "-.")
	return "mail-" + local[:min(len(local), longestProgram)] + "-" + hex.EncodeToString(h.Sum(nil))[:10]
}

// post adds the job that mails, with the first job that calls it.
func (p *parser) post() {
	m := p.mail
	if m == nil || m.stands {
		return
	}
	m.stands = true
	for _, j := range p.file.Jobs {
		if j.Name == m.name {
			return // of a line above, with the same addresses
		}
	}
	p.file.Jobs = append(p.file.Jobs, takeover.Job{Line: m.line, Name: m.name, Def: job.Definition{
		Description: takeover.Shorten("MAILTO="+strings.Join(m.to, ","), job.MaxDescription),
		Target:      target.Spec{Email: &target.Email{To: m.to}},
		Labels:      maps.Clone(Labels),
	}})
}
