// Package fuzz reads what nobody should have written: bytes in the store that no Belfry put there. Fuzz targets of one package's own readers
// stand beside them; here are those that need all packages.
package fuzz
