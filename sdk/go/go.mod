module github.com/phoneproof/phoneproof/sdk/go

go 1.24
