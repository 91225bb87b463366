package matcher

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"
)

// Expr is a compiled expression of a catalogue entry, in Go's expression
// syntax. A name whose fact is absent makes the result unknown, never zero:
// "a > 1 || b > 1" is true if either is known to be, and unknown if neither
// is and one is absent (Kleene's three values).
type Expr struct {
	src  string
	root ast.Expr
	kind kind
}

type kind int8

const (
	anyKind kind = iota
	numberKind
	boolKind
	textKind
)

func (k kind) String() string { return [...]string{"any", "number", "truth", "text"}[k] }

// Value is what an expression gives. The zero Value is unknown.
type Value struct {
	kind kind
	num  float64
	text string
	yes  bool
}

// Num, Text and Truth make known values.
func Num(v float64) Value { return Value{kind: numberKind, num: v} }

// Text makes a known text.
func Text(s string) Value { return Value{kind: textKind, text: s} }

// Truth makes a known truth value.
func Truth(b bool) Value { return Value{kind: boolKind, yes: b} }

// Known is false for a value that rests on an absent fact.
func (v Value) Known() bool { return v.kind != anyKind }

// Float gives the number; ok is false if the value is unknown or none.
func (v Value) Float() (float64, bool) { return v.num, v.kind == numberKind }

// True tells whether the value is known to be true.
func (v Value) True() bool { return v.kind == boolKind && v.yes }

// Scope resolves the names of an expression. It returns an unknown Value for an
// absent fact.
type Scope interface {
	Lookup(name string) Value
}

// noFacts is a scope in which every name is unknown.
type noFacts struct{}

// Lookup implements Scope.
func (noFacts) Lookup(string) Value { return Value{} }

// function is one that expressions may call.
type function struct {
	args      int // -1: any number, but one at least
	gives     kind
	form, doc string
}

// functions that expressions may call.
var functions = map[string]function{
	"min":        {-1, numberKind, "min(a, b, ...)", "the smallest"},
	"max":        {-1, numberKind, "max(a, b, ...)", "the largest"},
	"floor":      {1, numberKind, "floor(x)", "rounded down to a whole number"},
	"ceil":       {1, numberKind, "ceil(x)", "rounded up to a whole number"},
	"pow2":       {1, numberKind, "pow2(x)", "the largest power of two at or below x, 0 below 1"},
	"round2":     {1, numberKind, "round2(x)", "rounded down to two decimals"},
	"known":      {1, boolKind, "known(x)", "whether x has a value; true or false, never unknown"},
	"contains":   {2, boolKind, "contains(text, part)", "whether the part stands in the text"},
	"starts":     {2, boolKind, "starts(text, part)", "whether the text begins with the part"},
	"version_in": {1, boolKind, `version_in("<0.29")`, "whether vLLM's release is in the PEP 440 set"},
}

// Compile checks an expression: its syntax, its names against the vocabulary,
// its calls and its types.
func Compile(src string) (*Expr, error) {
	root, err := goparser.ParseExpr(src)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", src, err)
	}
	k, err := check(root)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", src, err)
	}
	return &Expr{src: src, root: root, kind: k}, nil
}

func (e *Expr) String() string { return e.src }

// Names lists the facts that the expression uses, in order, once each.
func (e *Expr) Names() []string {
	var names []string
	seen := map[string]bool{}
	ast.Inspect(e.root, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			for _, a := range x.Args {
				ast.Inspect(a, func(m ast.Node) bool { return collect(m, seen, &names) })
			}
			return false
		default:
			return collect(n, seen, &names)
		}
	})
	return names
}

func collect(n ast.Node, seen map[string]bool, names *[]string) bool {
	name := ""
	switch x := n.(type) {
	case *ast.SelectorExpr:
		name = selectorName(x)
	case *ast.Ident:
		if _, call := functions[x.Name]; call || x.Name == "true" || x.Name == "false" || x.Name == "GiB" || x.Name == "MiB" || x.Name == "KiB" {
			return true
		}
		name = x.Name
	default:
		return true
	}
	if name != "" && !seen[name] {
		seen[name] = true
		*names = append(*names, name)
	}
	return false
}

func selectorName(x *ast.SelectorExpr) string {
	if id, ok := x.X.(*ast.Ident); ok {
		return id.Name + "." + x.Sel.Name
	}
	return ""
}

func check(n ast.Expr) (kind, error) {
	switch x := n.(type) {
	case *ast.ParenExpr:
		return check(x.X)
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			return textKind, nil
		}
		if x.Kind == token.INT || x.Kind == token.FLOAT {
			return numberKind, nil
		}
	case *ast.Ident:
		switch x.Name {
		case "true", "false":
			return boolKind, nil
		case "GiB", "MiB", "KiB":
			return numberKind, nil
		}
		if v, ok := vocabulary[x.Name]; ok {
			return v.kind, nil
		}
		return 0, fmt.Errorf("unknown name %q", x.Name)
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); ok && id.Name == "flags" {
			return anyKind, nil
		}
		return 0, fmt.Errorf("unknown name %q", selectorName(x))
	case *ast.UnaryExpr:
		k, err := check(x.X)
		if err != nil {
			return 0, err
		}
		if x.Op == token.NOT {
			return boolKind, want(k, boolKind)
		}
		if x.Op == token.SUB {
			return numberKind, want(k, numberKind)
		}
	case *ast.BinaryExpr:
		return checkBinary(x)
	case *ast.CallExpr:
		return checkCall(x)
	}
	return 0, fmt.Errorf("%T is not allowed", n)
}

func want(got, need kind) error {
	if got != anyKind && got != need {
		return fmt.Errorf("a %s stands where a %s is needed", got, need)
	}
	return nil
}

func checkBinary(x *ast.BinaryExpr) (kind, error) {
	a, err := check(x.X)
	if err != nil {
		return 0, err
	}
	b, err := check(x.Y)
	if err != nil {
		return 0, err
	}
	need, gives := numberKind, numberKind
	switch x.Op {
	case token.ADD, token.SUB, token.MUL:
	case token.QUO:
		// With no fact at all only a constant has a value.
		if v, known := eval(x.Y, noFacts{}).Float(); known && v == 0 {
			return 0, fmt.Errorf("a division by zero")
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		gives = boolKind
	case token.LAND, token.LOR:
		need, gives = boolKind, boolKind
	case token.EQL, token.NEQ:
		if a != anyKind && b != anyKind && a != b {
			return 0, fmt.Errorf("a %s is compared with a %s", a, b)
		}
		return boolKind, nil
	default:
		return 0, fmt.Errorf("operator %s is not allowed", x.Op)
	}
	if err := want(a, need); err != nil {
		return 0, err
	}
	return gives, want(b, need)
}

func checkCall(x *ast.CallExpr) (kind, error) {
	id, ok := x.Fun.(*ast.Ident)
	if !ok {
		return 0, fmt.Errorf("only named functions may be called")
	}
	f, ok := functions[id.Name]
	if !ok {
		return 0, fmt.Errorf("unknown function %q", id.Name)
	}
	n := f.args
	if n >= 0 && len(x.Args) != n || n < 0 && len(x.Args) == 0 {
		return 0, fmt.Errorf("%s takes %d arguments, not %d", id.Name, n, len(x.Args))
	}
	for _, a := range x.Args {
		if _, err := check(a); err != nil {
			return 0, err
		}
	}
	return f.gives, nil
}

// Eval gives the value of the expression over the facts of s.
func (e *Expr) Eval(s Scope) Value { return eval(e.root, s) }

func eval(n ast.Expr, s Scope) Value {
	switch x := n.(type) {
	case *ast.ParenExpr:
		return eval(x.X, s)
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			t, err := strconv.Unquote(x.Value)
			if err != nil {
				return Value{}
			}
			return Text(t)
		}
		f, err := strconv.ParseFloat(strings.ReplaceAll(x.Value, "_", ""), 64)
		if err != nil {
			return Value{}
		}
		return Num(f)
	case *ast.Ident:
		switch x.Name {
		case "true", "false":
			return Truth(x.Name == "true")
		case "GiB":
			return Num(1 << 30)
		case "MiB":
			return Num(1 << 20)
		case "KiB":
			return Num(1 << 10)
		}
		return s.Lookup(x.Name)
	case *ast.SelectorExpr:
		return s.Lookup(selectorName(x))
	case *ast.UnaryExpr:
		v := eval(x.X, s)
		if x.Op == token.NOT && v.kind == boolKind {
			return Truth(!v.yes)
		}
		if x.Op == token.SUB && v.kind == numberKind {
			return Num(-v.num)
		}
	case *ast.BinaryExpr:
		return evalBinary(x, s)
	case *ast.CallExpr:
		return evalCall(x, s)
	}
	return Value{}
}

func evalBinary(x *ast.BinaryExpr, s Scope) Value {
	a := eval(x.X, s)
	switch x.Op {
	case token.LAND:
		if a.kind == boolKind && !a.yes {
			return Truth(false)
		}
		b := eval(x.Y, s)
		if b.kind == boolKind && !b.yes {
			return Truth(false)
		}
		if a.kind == boolKind && b.kind == boolKind {
			return Truth(true)
		}
		return Value{}
	case token.LOR:
		if a.True() {
			return Truth(true)
		}
		b := eval(x.Y, s)
		if b.True() {
			return Truth(true)
		}
		if a.kind == boolKind && b.kind == boolKind {
			return Truth(false)
		}
		return Value{}
	}
	b := eval(x.Y, s)
	if !a.Known() || !b.Known() {
		return Value{}
	}
	if x.Op == token.EQL || x.Op == token.NEQ {
		if a.kind != b.kind {
			return Value{}
		}
		return Truth((a == b) == (x.Op == token.EQL))
	}
	if a.kind != numberKind || b.kind != numberKind {
		return Value{}
	}
	switch x.Op {
	case token.ADD:
		return Num(a.num + b.num)
	case token.SUB:
		return Num(a.num - b.num)
	case token.MUL:
		return Num(a.num * b.num)
	case token.QUO:
		if b.num == 0 {
			return Value{}
		}
		return Num(a.num / b.num)
	case token.LSS:
		return Truth(a.num < b.num)
	case token.LEQ:
		return Truth(a.num <= b.num)
	case token.GTR:
		return Truth(a.num > b.num)
	case token.GEQ:
		return Truth(a.num >= b.num)
	}
	return Value{}
}

func evalCall(x *ast.CallExpr, s Scope) Value {
	name := x.Fun.(*ast.Ident).Name
	args := make([]Value, len(x.Args))
	for i, a := range x.Args {
		args[i] = eval(a, s)
	}
	if name == "known" {
		return Truth(args[0].Known())
	}
	for _, a := range args {
		if !a.Known() {
			return Value{}
		}
	}
	switch name {
	case "contains":
		return Truth(strings.Contains(args[0].text, args[1].text))
	case "starts":
		return Truth(strings.HasPrefix(args[0].text, args[1].text))
	case "version_in":
		return s.Lookup("version_in:" + args[0].text)
	}
	nums := make([]float64, len(args))
	for i, a := range args {
		if a.kind != numberKind {
			return Value{}
		}
		nums[i] = a.num
	}
	switch name {
	case "min", "max":
		best := nums[0]
		for _, v := range nums[1:] {
			if name == "min" {
				best = math.Min(best, v)
			} else {
				best = math.Max(best, v)
			}
		}
		return Num(best)
	case "floor":
		return Num(math.Floor(nums[0]))
	case "ceil":
		return Num(math.Ceil(nums[0]))
	case "round2":
		return Num(floor2(nums[0]))
	case "pow2":
		return Num(pow2Floor(nums[0]))
	}
	return Value{}
}

// floor2 rounds down to two decimals; the small term keeps 0.87 from becoming
// 0.86 when it is 0.8699999999 in binary.
func floor2(v float64) float64 { return math.Floor(v*100+1e-9) / 100 }

// pow2Floor is the largest power of two at or below v, 0 below 1.
func pow2Floor(v float64) float64 {
	if v < 1 {
		return 0
	}
	return math.Pow(2, math.Floor(math.Log2(v)+1e-12))
}
