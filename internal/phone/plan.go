package phone

import "github.com/nyaruka/phonenumbers"

// Only this file uses libphonenumber. The library's init reads its metadata (about 5 ms, always); patterns compile on
// first use of a country, under 1 ms each, about 6 MB for all countries together, so no warm-up is needed.

// isAssigned reports whether code, as BCD, is a country calling code.
func isAssigned(code uint64) bool {
	return phonenumbers.GetRegionCodeForCountryCode(int(toDecimal(code))) != phonenumbers.UNKNOWN_REGION //nolint:gosec // three digits at most
}

// lineType returns UNKNOWN for a number that is not valid. It does not use the library's own parser: given a country
// code, that only adds a guess about national prefixes, at twice the cost.
func lineType(n Number) phonenumbers.PhoneNumberType {
	return phonenumbers.GetNumberType(libraryNumber(n))
}

// outsidePlan returns why a number is not valid.
func outsidePlan(n Number) *Error {
	switch phonenumbers.IsPossibleNumberWithReason(libraryNumber(n)) {
	case phonenumbers.TOO_SHORT, phonenumbers.IS_POSSIBLE_LOCAL_ONLY:
		return errShort
	case phonenumbers.TOO_LONG:
		return errCountryLong
	}
	return errInvalid
}

// withoutNationalPrefix lets the library's parser drop a trunk prefix after the country code.
func withoutNationalPrefix(n Number) (Number, bool) {
	parsed, err := phonenumbers.Parse(n.E164(), phonenumbers.UNKNOWN_REGION)
	if err != nil {
		return Number{}, false
	}
	e164 := phonenumbers.Format(parsed, phonenumbers.E164)
	bare, err := FromE164(e164)
	return bare, err == nil && bare != n
}

// libraryNumber converts n to the library's form, which counts zeros at the start of the national part (Italy's
// landlines) separately.
func libraryNumber(n Number) *phonenumbers.PhoneNumber {
	code, codeLen := n.countryCode()
	nationalLen := n.countDigits() - codeLen
	national := n.lastDigits(nationalLen)
	// One digit is always left, as in the library: 000 is two zeros and a 0.
	zeros := int32(nationalLen - max(fromBCD(national).countDigits(), 1)) //nolint:gosec // at most 15 digits
	country, value := int32(toDecimal(code)), toDecimal(national)         //nolint:gosec // three digits at most
	p := &phonenumbers.PhoneNumber{CountryCode: &country, NationalNumber: &value}
	if zeros > 0 {
		leading := true
		p.ItalianLeadingZero, p.NumberOfLeadingZeros = &leading, &zeros
	}
	return p
}

// toDecimal converts BCD to its number.
func toDecimal(bcd uint64) uint64 {
	var value uint64
	for shift := 60; shift >= 0; shift -= 4 {
		value = value*10 + bcd>>shift&0xf
	}
	return value
}
