package local

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	errName    = errors.New("not a name for a file")
	segment    = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,199}$`)
	mixedParts = regexp.MustCompile(`^([a-z0-9._~-]+)\+([0-9a-f]+)$`)
)

// fileName is the name of the file or directory for a part of a key. Many file systems take "Report" and "report" for one
// (P12: they may be two tenants), so letters are stored small, and after a "+" stands which were large, a hexadecimal
// digit for every four characters. It fits the 255 bytes that file systems allow.
func fileName(part string) (string, error) {
	if !segment.MatchString(part) {
		return "", errName
	}
	small := strings.ToLower(part)
	if small == part {
		return part, nil
	}
	mask := make([]byte, (len(part)+3)/4)
	for i := range part {
		if part[i] != small[i] {
			mask[i/4] |= 1 << (i % 4)
		}
	}
	var name strings.Builder
	name.WriteString(small + "+")
	for _, digit := range mask {
		name.WriteString(strconv.FormatUint(uint64(digit), 16))
	}
	return name.String(), nil
}

// partOf is the part of a key that a file or directory stands for. A name that fileName does not give is somebody else's.
func partOf(name string) (string, error) {
	part := []byte(name)
	if found := mixedParts.FindStringSubmatch(name); found != nil && len(found[2]) == (len(found[1])+3)/4 {
		part = []byte(found[1])
		for i := range part {
			digit, err := strconv.ParseUint(found[2][i/4:i/4+1], 16, 8)
			if err != nil {
				return "", err
			}
			if digit&(1<<(i%4)) != 0 {
				part[i] = strings.ToUpper(string(part[i]))[0]
			}
		}
	}
	if its, err := fileName(string(part)); err != nil || its != name {
		return "", fmt.Errorf("file %q: %w", name, errName)
	}
	return string(part), nil
}
