// A module of its own, which uses the library as a program of a user does.
module driver

go 1.24

require github.com/phoneproof/phoneproof/sdk/go v0.1.0

replace github.com/phoneproof/phoneproof/sdk/go => ../../../../sdk/go
