// Package template holds what the stack of template.yaml promises. What can be seen in the text is tested by `go test`: rights,
// encryption, names, routes, alarms, parameters. What the tools of SAM and an emulator say of it is tested by `make test-template`:
// the linters, the template as SAM expands it, two stacks side by side with only the rights that they give themselves.
package template
