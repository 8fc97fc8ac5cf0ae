// Package cost counts what runs cost on AWS, and what an idle month does: the domain works over the memory engine, in the shape that
// the functions give it, and decorators count by AWS's published rules. prices.json has the prices, and what is assumed where nothing
// can be counted here. `make cost` prints the tables; docs/cost.md has them, and a test holds it to that.
package cost
