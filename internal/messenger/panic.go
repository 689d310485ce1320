package messenger

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// RecoverPanic ends a panic of the function that defers it, and passes on where it happened. A message that met a bug once
// will meet it again, so its handler survives and the message is acknowledged.
//
// The value of a panic may be a part of the message, so only the runtime's own values are in the error.
func RecoverPanic(handle func(failure error)) {
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
