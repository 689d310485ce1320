package apiproxy

// MinUnanswered is for the tests of this package.
const MinUnanswered = minUnanswered
