module example.org/unheard-of

go 1.26.0
