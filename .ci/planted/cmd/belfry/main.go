// Command belfry wires: it reads the clock and the environment, draws from chance, speaks to drivers, and ends the process.
package main

import (
	_ "crypto/rand"
	"fmt"
	"os"
	"time"

	_ "github.com/aws/aws-sdk-go-v2"
)

func main() {
	fmt.Println(time.Now(), os.Getenv("BELFRY_STORE"))
	os.Exit(0)
}
