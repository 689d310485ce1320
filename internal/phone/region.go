package phone

import "github.com/nyaruka/phonenumbers"

// Region is an ISO 3166 country or territory, such as DO for +1 809 and JE for +44 1534.
type Region string

// LineKind is what a number is, as far as the numbering plan of its region shows it.
type LineKind int

// The kinds of lines.
const (
	LineUsual LineKind = iota
	LinePremium
	LineSharedCost
	LinePager
	LineVoIP
	LineUnknown
)

// RegionOf returns the region and the kind of a number, the same for all forms of one line; false if the number belongs to no region.
func RegionOf(n Number) (Region, LineKind, bool) {
	number := libraryNumber(Canonical(n))
	region := phonenumbers.GetRegionCodeForNumber(number)
	if len(region) != 2 || region == phonenumbers.UNKNOWN_REGION {
		return "", LineUnknown, false
	}
	return Region(region), lineKindOf(phonenumbers.GetNumberType(number)), true
}

func lineKindOf(line phonenumbers.PhoneNumberType) LineKind {
	switch line {
	case phonenumbers.PREMIUM_RATE:
		return LinePremium
	case phonenumbers.SHARED_COST:
		return LineSharedCost
	case phonenumbers.PAGER:
		return LinePager
	case phonenumbers.VOIP:
		return LineVoIP
	case phonenumbers.UNKNOWN:
		return LineUnknown
	default:
		return LineUsual
	}
}
