package phone

// countryCode returns the country calling code as BCD and its length. Calling codes are prefix-free, so the first two
// digits determine the length (ITU-T E.164 list of assigned codes); a test compares this with libphonenumber's
// metadata. An unassigned code counts as three digits.
func (n Number) countryCode() (code uint64, length int) {
	length = 3
	switch n.firstDigits(1) {
	case 1, 7:
		length = 1
	default:
		if twoDigitCode(n.firstDigits(2)) {
			length = 2
		}
	}
	return n.firstDigits(length), length
}

func twoDigitCode(p uint64) bool {
	switch p >> 4 {
	case 2:
		return p == 0x20 || p == 0x27
	case 3:
		return p != 0x35 && p != 0x37 && p != 0x38
	case 4:
		return p != 0x42
	case 5:
		return p != 0x50 && p != 0x59
	case 6:
		return p <= 0x66
	case 8:
		return p == 0x81 || p == 0x82 || p == 0x84 || p == 0x86
	case 9:
		return p <= 0x95 || p == 0x98
	}
	return false
}
