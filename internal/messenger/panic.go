package messenger

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// RecoverPanic ends a panic of the function that defers it, and passes it on with its stack. A message that met a bug once
// would meet it again, so it is acknowledged and not redelivered.
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
