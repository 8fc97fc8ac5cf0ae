package architecture

import (
	"go/ast"
	"go/constant"
	"go/token"
	"strconv"
	"strings"
	"time"
)

// leastDeadline is how long a test waits at least before it takes something to hang: a busy machine may need several times as long as an
// idle one, so that what is shorter measures the machine.
const leastDeadline = 5 * time.Minute

// hasty are the files of tests with shorter deadlines in real time, each with the reason why they are no limit for the machine.
var hasty = map[string]string{
	"lib/queue/queuetest/queuetest.go":       "a wait that its context ends is the subject",
	"lib/store/pebble/crash_test.go":         "calls must not be answered, and their contexts end them",
	"lib/target/awstarget/awstarget_test.go": "a call that its context ends is the subject",
	"lib/lambda/gateway/gateway_test.go":     "a request that has no time left is the subject",
	"tests/load/load.go":                     "clients ask again when an answer does not come, as those of users do",
	"tests/process/process.go":               "clients ask again when an answer does not come, as those of users do",
}

// waits is what a file of tests says about time: deadlines, as expressions, and seeds.
type waits struct {
	deadlines []wait
	seeds     []int // lines at which a seed is taken from the clock
}

type wait struct {
	line int
	long ast.Expr
}

// constants gives the constants that a file declares, by name.
func constants(file *ast.File) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, name := range spec.Names {
				found[name.Name] = spec.Values[i]
			}
		}
		return true
	})
	return found
}

// seeders are functions that begin a source of chance, or give the seed of one.
var seeders = []string{"NewPCG", "NewChaCha8", "NewSource", "Seed", "Number"}

// waitsOf looks for deadlines and seeds. It knows them by the names of what is called: a test that hides them has hidden them on purpose.
func waitsOf(file *ast.File, files *token.FileSet) waits {
	var w waits
	line := func(n ast.Node) int { return files.Position(n.Pos()).Line }
	seed := func(name string, values ...ast.Expr) {
		for _, value := range values {
			if strings.Contains(strings.ToLower(name), "seed") && readsClock(value) {
				w.seeds = append(w.seeds, line(value))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := ""
			switch called := n.Fun.(type) {
			case *ast.SelectorExpr:
				name = called.Sel.Name
			case *ast.Ident:
				name = called.Name
			}
			switch {
			case (name == "WithTimeout" || name == "WithTimeoutCause") && len(n.Args) > 1:
				w.deadlines = append(w.deadlines, wait{line(n), n.Args[1]})
			default:
				for _, seeder := range seeders {
					if name == seeder {
						seed("seed", n.Args...)
					}
				}
			}
		case *ast.CompositeLit:
			if of, ok := n.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Client" {
				for _, field := range n.Elts {
					if set, ok := field.(*ast.KeyValueExpr); ok {
						if key, ok := set.Key.(*ast.Ident); ok && key.Name == "Timeout" {
							w.deadlines = append(w.deadlines, wait{line(set), set.Value})
						}
					}
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if name, ok := to.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
					seed(name.Name, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					seed(name.Name, n.Values[i])
				}
			}
		}
		return true
	})
	return w
}

// readsClock tells whether an expression asks for the time.
func readsClock(e ast.Expr) bool {
	reads := false
	ast.Inspect(e, func(n ast.Node) bool {
		if called, ok := n.(*ast.SelectorExpr); ok && called.Sel.Name == "Now" {
			if of, ok := called.X.(*ast.Ident); ok && of.Name == "time" {
				reads = true
			}
		}
		return true
	})
	return reads
}

var units = map[string]time.Duration{"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// long gives how long an expression says, of numbers, units of time and constants of the package; false where more than that is in it.
func long(e ast.Expr, constants map[string]ast.Expr) (time.Duration, bool) {
	v := valueOf(e, constants, 10)
	n, exact := constant.Int64Val(constant.ToInt(v))
	return time.Duration(n), exact
}

func valueOf(e ast.Expr, constants map[string]ast.Expr, depth int) constant.Value {
	if depth == 0 {
		return constant.MakeUnknown()
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return valueOf(e.X, constants, depth)
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok && of.Name == "time" {
			if unit, ok := units[e.Sel.Name]; ok {
				return constant.MakeInt64(int64(unit))
			}
		}
	case *ast.Ident:
		if named, ok := constants[e.Name]; ok {
			return valueOf(named, constants, depth-1)
		}
	case *ast.BinaryExpr:
		x, y := valueOf(e.X, constants, depth-1), valueOf(e.Y, constants, depth-1)
		if x.Kind() == constant.Unknown || y.Kind() == constant.Unknown {
			return constant.MakeUnknown()
		}
		op := e.Op
		if op == token.QUO {
			op = token.QUO_ASSIGN // of integers
		}
		return constant.BinaryOp(x, op, y)
	}
	return constant.MakeUnknown()
}

// checkWaits holds that no test measures the machine, and that none draws from the clock.
func (t tree) checkWaits(dir string, virtual bool, hasty map[string]string, used map[string]bool, refuse func(where, format string, args ...any)) {
	all := map[string]ast.Expr{}
	for _, s := range t.packages[dir] {
		for name, value := range s.constants {
			all[name] = value
		}
	}
	at := func(s source, line int) string { return s.name + ":" + strconv.Itoa(line) }
	for _, s := range t.packages[dir] {
		if !s.isTest() && !suite(dir) && !strings.HasPrefix(dir, "tests/") {
			continue
		}
		for _, d := range s.waits.deadlines {
			if length, known := long(d.long, all); known && length < leastDeadline && !virtual {
				used[s.name] = true
				if hasty[s.name] == "" {
					refuse(at(s, d.line), "waits for %s at most, which a busy machine may need: %s or more, or no deadline, or a reason in hasty", length, leastDeadline)
				}
			}
		}
		for _, line := range s.waits.seeds {
			refuse(at(s, line), "takes its seed from the clock: process.Seed is the same each time, and make test-deep draws others")
		}
	}
}
