package run

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxPattern is how many bytes a pattern has at the most. What is kept of an error may be cut, in one run earlier than in another: by this
// much of it they are mostly alike.
const MaxPattern = 100

// Blank stands in a pattern for what differs between errors of one cause.
const Blank = '#'

// Pattern gives an error without what differs between errors of one cause: numbers, hexadecimal and other IDs, addresses, times and quoted
// text are each one Blank, and white space is one blank. Two errors of one pattern are taken to have one cause. It holds no digit.
func Pattern(text string) string {
	p := patterned{rest: strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")}
	p.cut = strings.HasSuffix(p.rest, cutMark)
	for p.rest != "" && p.out.Len() <= MaxPattern {
		first, size := utf8.DecodeRuneInString(p.rest)
		switch {
		case inWord(first):
			p.word()
		case first == '"', first == '`', first == '\'':
			p.quote(byte(first))
		case first == Blank:
			p.blank()
			p.rest = p.rest[size:]
		default:
			p.plain(size)
		}
		p.before = first
	}
	p.out.WriteString(p.held)
	return cut(p.out.String(), MaxPattern)
}

// patterned is a pattern in the making.
type patterned struct {
	rest   string // what is still to be read
	out    strings.Builder
	held   string // separators behind a Blank: between two of them they belong to one value, such as an address
	blanks bool   // a Blank was written last, but for what is held
	before rune   // the first character of what stands in front of rest: of a word, or alone
	cut    bool   // only the beginning of the error was kept
}

func (p *patterned) write(text string) {
	p.out.WriteString(p.held)
	p.out.WriteString(text)
	p.held, p.blanks = "", false
}

func (p *patterned) blank() {
	if !p.blanks {
		p.write(string(Blank))
	}
	p.held, p.blanks = "", true
}

// separators stand between the parts of one value: of an address, a time, a version, a range, a list.
const separators = ".:/-+,"

// plain writes what is neither word nor quote.
func (p *patterned) plain(size int) {
	text := p.rest[:size]
	p.rest = p.rest[size:]
	list := text == " " && strings.HasSuffix(p.held, ",")
	if p.blanks && (strings.Contains(separators, text) || list) && len(p.held) < 2 {
		p.held += text
		return
	}
	p.write(text)
}

// word writes letters, and a Blank for what is counted, measured or drawn.
func (p *patterned) word() {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !inWord(r) })
	if end < 0 {
		end = len(p.rest)
	}
	drawn := uuid(p.rest)
	end = max(end, drawn)
	word := p.rest[:end]
	p.rest = p.rest[end:]
	if drawn > 0 || isValue(word) {
		p.blank()
		return
	}
	for word != "" {
		digits := strings.IndexFunc(word, unicode.IsDigit)
		if digits < 0 {
			p.write(word)
			return
		}
		if digits > 0 {
			p.write(word[:digits])
		}
		p.blank()
		word = strings.TrimLeftFunc(word[digits:], unicode.IsDigit)
	}
}

// isValue tells whether nothing of a word names a cause: it begins with a digit, is hexadecimal, or looks drawn at random.
func isValue(word string) bool {
	digits, groups, hexadecimal := 0, 0, true
	last := ' '
	for _, r := range word {
		if unicode.IsDigit(r) {
			if digits++; !unicode.IsDigit(last) {
				groups++
			}
		} else if !isHex(r) {
			hexadecimal = false
		}
		last = r
	}
	first, _ := utf8.DecodeRuneInString(word)
	switch {
	case unicode.IsDigit(first), hexadecimal && len(word) >= 8, hexadecimal && digits > 0 && len(word) >= 3:
		return true
	}
	return groups >= 2 && len(word) >= 8
}

func isHex(r rune) bool { return r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' }

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// uuid gives the length of the UUID that a text begins with, 0 where there is none.
func uuid(text string) int {
	const length = len("00000000-0000-0000-0000-000000000000")
	if len(text) < length {
		return 0
	}
	for i := range length {
		switch c := rune(text[i]); i {
		case 8, 13, 18, 23:
			if c != '-' {
				return 0
			}
		default:
			if !isHex(c) && (c < '0' || c > '9') {
				return 0
			}
		}
	}
	if next, _ := utf8.DecodeRuneInString(text[length:]); len(text) > length && inWord(next) {
		return 0
	}
	return length
}

// quote writes a Blank for quoted text. A quote that is not closed is a character as any other, unless the error was cut in it; so is the
// apostrophe of a word.
func (p *patterned) quote(mark byte) {
	end := closing(p.rest, mark)
	next, _ := utf8.DecodeRuneInString(p.rest[1:])
	switch {
	case mark == '\'' && (inWord(p.before) || next == ' '):
		p.plain(1)
	case end > 0:
		p.blank()
		p.rest = p.rest[end+1:]
	case p.cut && mark != '\'':
		p.blank()
		p.rest = ""
	default:
		p.plain(1)
	}
}

// closing gives where the quote ends that a text begins with, 0 where it does not.
func closing(text string, mark byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && mark == '"':
			i++
		case text[i] == mark && mark == '\'':
			if next, _ := utf8.DecodeRuneInString(text[i+1:]); i+1 == len(text) || !inWord(next) {
				return i
			}
		case text[i] == mark:
			return i
		}
	}
	return 0
}
