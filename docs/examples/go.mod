// A module of its own, so that PhoneProof's does not require its library.
module github.com/phoneproof/phoneproof/docs/examples

go 1.24

require github.com/phoneproof/phoneproof/sdk/go v0.1.0

replace github.com/phoneproof/phoneproof/sdk/go => ../../sdk/go
