// Package access says who may do what: the scopes that operations ask for and tokens have.
package access
