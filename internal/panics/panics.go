// Package panics turns panics into errors with their stacks, without what may be in their values.
package panics

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Recover ends a panic of the function that defers it, and passes it on with its stack. A message that met a bug once would meet it
// again, so it is acknowledged and not redelivered.
//
// The value of a panic may be a part of the message, so only the runtime's own values are in the error.
func Recover(handle func(failure error)) {
	value := recover()
	if value == nil {
		return
	}
	err, ok := value.(runtime.Error)
	if !ok {
		handle(fmt.Errorf("panic: %T\n%s", value, debug.Stack()))
		return
	}
	handle(fmt.Errorf("panic: %w\n%s", err, debug.Stack()))
}

// ToError runs a function and returns its error, or its panic as one. What a server runs in goroutines runs so: a loop that
// panics ends its term and not the process, and another part has the process drain before it ends.
func ToError(run func() error) (err error) {
	defer Recover(func(failure error) { err = failure })
	return run()
}
