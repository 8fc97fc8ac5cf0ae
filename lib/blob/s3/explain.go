package s3

import (
	"errors"
	"fmt"
	"net"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/belfry-scheduler/belfry/lib/blob"
)

// Explain says in one line what is wrong with a bucket, and what to do about it. region is that of the AWS configuration.
func Explain(a Address, region string, err error) error {
	if err == nil {
		return nil
	}
	if a.Region != "" {
		region = a.Region
	}
	place := fmt.Sprintf("bucket %q in %s", a.Bucket, region)
	if a.Endpoint != "" {
		place += " at " + a.Endpoint
	}
	var said smithy.APIError
	var lost *smithyhttp.RequestSendError
	var name *net.DNSError
	switch {
	case errors.Is(err, blob.ErrNoBucket):
		return fmt.Errorf("there is no %s: make it, or name another bucket or region", place)
	case errors.As(err, &said):
		switch code := said.ErrorCode(); code {
		case "NoSuchBucket", "NotFound":
			return fmt.Errorf("there is no %s: make it, or name another bucket or region", place)
		case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301":
			return fmt.Errorf("the bucket is not in that region: %s: correct its region, as in s3://%s?region=…", place, a.Bucket)
		case "AccessDenied", "AllAccessDisabled":
			return fmt.Errorf("%s: the credentials lack a right: allow s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject in it (aws sts get-caller-identity names the role)", place)
		case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
			return fmt.Errorf("%s: AWS does not accept the credentials (%s): renew them, or choose others by AWS_PROFILE", place, code)
		}
		return fmt.Errorf("%s: %s: %s", place, said.ErrorCode(), said.ErrorMessage())
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Errorf("%s: there is no host %s: correct the region or the endpoint", place, name.Name)
	case errors.As(err, &lost):
		return fmt.Errorf("%s does not answer: see that it can be reached from here: %w", place, lost.Err)
	}
	return fmt.Errorf("%s: %w", place, err)
}
