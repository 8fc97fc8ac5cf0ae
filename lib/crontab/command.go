package crontab

import (
	"encoding/hex"
	"hash/fnv"
	"path"
	"regexp"
	"strings"
)

const blanks = " \t"

// word takes the first word off a line.
func word(line string) (first, rest string) {
	line = strings.TrimLeft(line, blanks)
	end := strings.IndexAny(line, blanks)
	if end < 0 {
		return line, ""
	}
	return line[:end], strings.TrimLeft(line[end:], blanks)
}

// splitInput takes a command apart as cron does: the first percent sign ends it, and what follows is its standard input,
// where each further one is a line's end. A backslash before a percent sign makes it an ordinary one; elsewhere it stays.
func splitInput(text string) (command, input string) {
	var b strings.Builder
	escaped := false
	rest, found := "", false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && !escaped {
			rest, found = text[i+1:], true
			break
		}
		if c == '%' {
			before := strings.TrimSuffix(b.String(), `\`)
			b.Reset()
			b.WriteString(before)
		}
		b.WriteByte(c)
		// A backslash after a backslash is an ordinary one: it does not reach to a percent sign behind it.
		escaped = c == '\\' && !escaped
	}
	command = b.String()
	if !found || rest == "" {
		return command, ""
	}
	return command, inputText(rest)
}

// inputText is the rest of a command as its standard input, which always ends with a line's end.
func inputText(text string) string {
	var b strings.Builder
	escaped := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
		case !escaped && c == '%':
			c = '\n'
		}
		if escaped = c == '\\'; !escaped {
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	if out := b.String(); !strings.HasSuffix(out, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}

// nameOf gives a job's name: the program that a person would recognize it by, and a hash that tells apart what else the
// command says. It must never change for the same command, or a second import would double the jobs.
func nameOf(cfg Config, command, input string) string {
	h := fnv.New64a()
	for _, part := range []string{cfg.Origin, cfg.User, strings.Trim(command, blanks), input} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return program(command) + "-" + hex.EncodeToString(h.Sum(nil))[:10]
}

var (
	shellWords = regexp.MustCompile(`[^\s;&|()<>"'` + "`" + `$]+`)
	programs   = regexp.MustCompile(`^[A-Za-z0-9/._][A-Za-z0-9/._+-]*$`)
	notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// passedOver stand before the program that a line is about.
var passedOver = map[string]bool{"test": true, "[": true, "command": true, "if": true, "then": true, "cd": true, "exec": true,
	"nice": true, "ionice": true, "env": true, "sh": true, "bash": true, "sudo": true, "sleep": true, "null": true, "date": true}

const longestProgram = 40

// program guesses the word that the command is about. A poor guess makes a poor name, and no harm.
func program(command string) string {
	for _, w := range shellWords.FindAllString(command, -1) {
		base := strings.TrimLeft(notInNames.ReplaceAllString(path.Base(w), "-"), "._-")
		if !programs.MatchString(w) || strings.HasPrefix(w, "/run/") || strings.Trim(base, "0123456789.-") == "" || passedOver[base] {
			continue
		}
		return base[:min(len(base), longestProgram)]
	}
	return "command"
}
