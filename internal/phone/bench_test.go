package phone

import "testing"

func BenchmarkParse(b *testing.B) {
	for _, bc := range []struct{ name, input string }{
		{"mobile", "+49 151 12345678"},
		{"north_america", "+1 868 291 1234"},
		{"variant", "+52 1 55 1234 5678"},
		{"trunk_prefix", "+44 (0)20 7946 0000"},
		{"junk", "tel:+4915112345678"},
		{"invalid", "+1 555 010 0000"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(bc.input)
			}
		})
	}
}

func BenchmarkParseWhatsApp(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ParseWhatsApp("5215512345678")
	}
}

func BenchmarkSame(b *testing.B) {
	x, y := mustNumber("+5511987654321"), mustNumber("+551187654321")
	b.ReportAllocs()
	for b.Loop() {
		_ = Same(x, y)
	}
}

func BenchmarkE164(b *testing.B) {
	n := mustNumber("+5511987654321")
	b.ReportAllocs()
	for b.Loop() {
		_ = n.E164()
	}
}
