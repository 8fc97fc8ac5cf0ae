package wire

import "github.com/belfry-scheduler/belfry/lib/schedule"

// CapacityQuestion asks what a load needs of a stack on AWS. One of PerSecond and PerDay must be given; what else is left out has its default.
type CapacityQuestion struct {
	Schedules int
	PerDay    float64
	PerSecond float64
	Peak      float64
	AtOnce    *float64
	Late      schedule.Duration
	Duration  schedule.Duration
	OnDemand  float64
	Ahead     float64
	Together  int
	Retries   float64
	Payload   *int
	Result    int
	Retention schedule.Duration
	Tenants   int
	Priority  float64
	HotJob    float64
	Shards    int
	Helpers   *int
}

// CapacityLoad is what a stack is to carry.
type CapacityLoad struct {
	Schedules int     `json:"schedules" doc:"jobs that have a schedule"`
	Rate      float64 `json:"runs_per_second" doc:"runs a second, over the month"`
	Daily     float64 `json:"runs_per_day" doc:"the same, a day"`
	Peak      float64 `json:"peak_runs_per_second" doc:"runs a second in the busiest minute"`
	AtOnce    float64 `json:"at_once" doc:"share of that minute's runs, from 0 to 1, that is due in its first second"`

	Late      schedule.Duration `json:"late" doc:"by when these are to have started"`
	Duration  schedule.Duration `json:"duration" doc:"how long a target takes, on average"`
	OnDemand  float64           `json:"on_demand" doc:"share of the runs that are asked for, to start at once"`
	Ahead     float64           `json:"ahead" doc:"share of those that are asked for ahead of their time; the rest are fires"`
	Together  int               `json:"runs_in_a_request" doc:"how many runs each request to the API asks for"`
	Retries   float64           `json:"retries_of_a_run" doc:"further attempts of a run, on average"`
	Payload   int               `json:"payload_bytes" doc:"what a request brings"`
	Result    int               `json:"result_bytes" doc:"what a target answers"`
	Retention schedule.Duration `json:"retention" doc:"for how long ended runs are kept"`
	Tenants   int               `json:"tenants" doc:"how many share the load evenly"`
	Priority  float64           `json:"priority" doc:"share of the runs that have the most usual priority"`
	HotJob    float64           `json:"hot_job_runs_per_second" doc:"requests a second for the busiest job"`

	Gates  []CapacityGate `json:"gates,omitempty" doc:"gates that each tenant has"`
	Passes []CapacityPass `json:"passes,omitempty" doc:"who passes them; of a gate without any, all runs do"`

	Shards  int `json:"shards" doc:"shards of the table; 0 for as many as the load needs"`
	Helpers int `json:"helpers" doc:"ticks at once beside the one by the clock; -1 for as many as the load needs"`
}

// CapacityGate is a limit that jobs share.
type CapacityGate struct {
	Name  string `json:"name" doc:"of the gate"`
	Limit int    `json:"limit_units" doc:"units in progress at once"`
}

// CapacityPass says that some of the runs pass a gate. Several of one gate are those of several jobs.
type CapacityPass struct {
	Gate  string  `json:"gate" doc:"name of the gate"`
	Share float64 `json:"share" doc:"share of all runs"`
	Units int     `json:"units" doc:"units that each of them takes"`
}

// CapacityPlan is what a load needs of a stack on AWS.
type CapacityPlan struct {
	Load     CapacityLoad        `json:"load" doc:"what it is to carry, with its defaults"`
	Region   string              `json:"region" doc:"region that the prices are of"`
	AsOf     string              `json:"prices_as_of" doc:"month in which the pages of the prices were read"`
	Quotas   string              `json:"quotas_as_of" doc:"month in which the pages of the quotas were read"`
	Ticks    CapacityTicks       `json:"ticks" doc:"what the claims of a minute need"`
	Workers  CapacityWorkers     `json:"workers" doc:"what the worker functions need"`
	API      CapacityAPI         `json:"api" doc:"what callers need"`
	Queues   CapacityQueues      `json:"queues" doc:"what SQS carries"`
	Table    CapacityTable       `json:"table" doc:"what the load needs of DynamoDB"`
	Gates    []CapacityGateLoad  `json:"gates,omitempty" doc:"gates under load, the bottleneck among them first"`
	Settings []CapacityParameter `json:"parameters" doc:"parameters of the template that are not its defaults"`
	Needs    []CapacityNeed      `json:"quotas_to_raise" doc:"quotas of AWS of which the load needs more"`
	Bill     CapacityBill        `json:"bill" doc:"that of a month of 30 days, at list prices, without what is free"`
	Limits   []CapacityLimit     `json:"limits" doc:"in the order in which a growing load comes upon them"`
	First    *CapacityLimit      `json:"first_exceeded,omitempty" doc:"the first of them that this load is beyond; left out where there is none"`
	Next     *CapacityLimit      `json:"next,omitempty" doc:"the first of them that this load has not come upon; left out where there is none"`
	Verdict  CapacityVerdict     `json:"verdict" doc:"what the limits come to"`
	Prices   []CapacityPrice     `json:"prices" doc:"what the bill was made with"`

	ObjectsASecond float64 `json:"objects_per_second" doc:"payloads and results that are objects of S3, in the busiest minute"`
}

// CapacityTicks is what the claims of a minute need. None of it was measured on DynamoDB: Pace rests on assumptions.
type CapacityTicks struct {
	Shards       int     `json:"shards" doc:"shards of the table"`
	Buckets      int     `json:"buckets_of_a_shard" doc:"buckets of a minute that each shard has"`
	Minute       float64 `json:"runs_in_a_minute" doc:"runs in the busiest minute"`
	OfShard      float64 `json:"runs_of_a_shard" doc:"of these, those of a shard"`
	Pages        float64 `json:"pages_of_a_bucket" doc:"pages of timers that a bucket has then"`
	Asks         bool    `json:"asks_for_help" doc:"a shard has more than one tick is to do alone"`
	BucketPace   float64 `json:"runs_per_second_bucket" doc:"what a bucket allows, by requests one after the other; assumed"`
	CPUPace      float64 `json:"runs_per_second_cpu" doc:"what the CPU of a tick allows; assumed"`
	Pace         float64 `json:"runs_per_second_tick" doc:"what a tick does on a shard; assumed"`
	Most         float64 `json:"runs_per_second_most" doc:"what as many ticks do as there are shards; assumed"`
	AtOnce       int     `json:"ticks_at_once" doc:"ticks at once that the busiest minute needs"`
	Helpers      int     `json:"helpers" doc:"of these, those beside the one by the clock"`
	Seconds      float64 `json:"minute_takes_seconds" doc:"how long they take for the busiest minute; assumed"`
	Round        int     `json:"requests_in_a_row" doc:"requests to DynamoDB one after the other, for a page"`
	Sends        int     `json:"sends_in_a_row" doc:"requests to SQS one after the other, for a page"`
	RequestMS    float64 `json:"assumed_dynamo_ms" doc:"how long a request to DynamoDB is assumed to take"`
	SendMS       float64 `json:"assumed_sqs_ms" doc:"how long a request to SQS is assumed to take"`
	CPUOfARunMS  float64 `json:"assumed_cpu_ms" doc:"time of a whole CPU that a run is assumed to take"`
	CPUOfATick   float64 `json:"cpus_of_a_tick" doc:"CPUs that the memory of a tick gives it"`
	Spare        float64 `json:"spare_share" doc:"share of the minute that is left; below 0 ticks fall behind"`
	Enough       bool    `json:"enough" doc:"all of a minute is claimed within it, and as much is spare as is aimed at"`
	TimeoutAfter float64 `json:"function_timeout_seconds" doc:"when Lambda ends a tick"`
}

// CapacityWorkers is what the worker functions need.
type CapacityWorkers struct {
	Seconds   float64 `json:"seconds_of_an_event" doc:"how long a function takes for an event; assumed"`
	Batch     float64 `json:"runs_of_an_event" doc:"runs that an event brings at most: what comes at once fills it, and where few come evenly it has one"`
	Starts    float64 `json:"starts_per_second" doc:"runs that start in a second, when most do"`
	Mean      float64 `json:"functions_mean" doc:"functions at once over the month, by Little's law"`
	Even      float64 `json:"functions_even" doc:"functions at once in the busiest minute, were its runs spread over it"`
	Burst     float64 `json:"functions_burst" doc:"functions at once in the busiest minute as it is: workers at the peak; of what comes evenly, as many as let 99 of 100 runs start within late, by Erlang C"`
	From      float64 `json:"functions_at_first" doc:"of the most usual priority, when the busiest minute begins"`
	ScalingUp float64 `json:"seconds_to_scale" doc:"until that many are there, by what Lambda adds"`
	LastStart float64 `json:"last_start_seconds" doc:"how long the last run of the busiest minute waits for a function"`
	Late      bool    `json:"late" doc:"the last start is later than the load allows"`
	InFlight  float64 `json:"messages_in_flight" doc:"messages of a queue that functions hold at once"`
}

// CapacityAPI is what callers need.
type CapacityAPI struct {
	Requests  float64 `json:"requests_per_second" doc:"requests in the busiest minute, with as many runs in each as the load says"`
	Functions float64 `json:"functions" doc:"functions at once; assumed"`
}

// CapacityQueues is what SQS carries.
type CapacityQueues struct {
	OfARun   float64 `json:"requests_of_a_run" doc:"requests that a run takes, in full batches"`
	Requests float64 `json:"requests_per_second" doc:"requests in the busiest minute"`
	Messages float64 `json:"messages_waiting" doc:"messages that wait for their second: claimed ahead, with a delay"`
	MaxDelay float64 `json:"longest_delay_seconds" doc:"longest time that one waits so"`
	Batch    int     `json:"messages_of_a_request" doc:"messages that a request carries at most"`
}

// CapacityTable is what the load needs of DynamoDB.
type CapacityTable struct {
	WritesOfARun float64       `json:"write_units_of_a_run" doc:"counted by tests"`
	ReadsOfARun  float64       `json:"read_units_of_a_run" doc:"counted by tests"`
	Dense        bool          `json:"dense" doc:"buckets of the busiest minute have more than a page"`
	Writes       float64       `json:"write_units_per_second" doc:"write units when most runs start"`
	Reads        float64       `json:"read_units_per_second" doc:"read units when most runs start"`
	Partitions   int           `json:"partitions" doc:"partitions at the least, by units and by size"`
	Records      float64       `json:"records_per_day" doc:"records that come in a day: runs, and the timers that wake for them"`
	RunsKept     float64       `json:"runs_kept" doc:"runs that are there once as many expire as come"`
	StoredGB     float64       `json:"stored_gb" doc:"size of the table once as much expires as comes"`
	JobsGB       float64       `json:"jobs_gb" doc:"of it, definitions of jobs"`
	ObjectsGB    float64       `json:"objects_gb" doc:"size of the bucket of S3, the same"`
	Keys         []CapacityKey `json:"keys" doc:"the hottest partition keys of each kind that a load can exhaust, that first which bends first"`
}

// CapacityKey is a partition key under load.
type CapacityKey struct {
	Key     string  `json:"key" doc:"as the table has it, with words in place of what differs"`
	What    string  `json:"what" doc:"what it is"`
	Unit    string  `json:"unit" enum:"write,read" doc:"kind of units"`
	Units   float64 `json:"units_per_second" doc:"units in the busiest minute"`
	Limit   float64 `json:"limit_units_per_second" doc:"units that a partition has"`
	Reached float64 `json:"reached_at_runs_per_second" doc:"runs a second in the busiest minute with which it has them"`
}

// CapacityGateLoad is a gate under load, in the busiest minute. Each tenant has one of that name, which takes its part.
type CapacityGateLoad struct {
	CapacityGate
	Runs        float64 `json:"runs_per_second" doc:"runs that pass it"`
	Held        float64 `json:"held_seconds" doc:"how long a run keeps its units: its attempts, and what is between them"`
	Units       float64 `json:"units" doc:"units that would be taken on average, were there no limit, by Little's law"`
	Utilization float64 `json:"utilization" doc:"units, by the limit; above 1 the line grows"`
	LastStart   float64 `json:"last_start_seconds" doc:"how long the last run of a burst waits"`
	Late        bool    `json:"late" doc:"the last start is later than the load allows, or the line grows"`
	Reached     float64 `json:"reached_at_runs_per_second" doc:"runs a second in the busiest minute, of all jobs and tenants, with which it is always full"`
}

// CapacityParameter is a parameter of the template.
type CapacityParameter struct {
	Name  string  `json:"name" doc:"as the template has it"`
	Value float64 `json:"value" doc:"what to set it to"`
	Needs float64 `json:"needs" doc:"what the load needs"`
	Short bool    `json:"short" doc:"more is needed than can be set"`
}

// CapacityQuota is a limit of AWS, as its documentation has it.
type CapacityQuota struct {
	Name  string  `json:"name" doc:"as the console of Service Quotas calls it, or the documentation where that has none"`
	Value float64 `json:"value" doc:"what there is of it; its unit is in the name"`
	Fixed bool    `json:"fixed" doc:"it cannot be raised"`
	Page  string  `json:"page" doc:"page of AWS that says so"`
}

// CapacityNeed is a quota of which the load needs more.
type CapacityNeed struct {
	CapacityQuota
	Needs float64 `json:"needs" doc:"what the load needs, and a tenth more"`
}

// CapacityBill is that of a month.
type CapacityBill struct {
	Runs     float64            `json:"runs_per_month" doc:"runs that it is for"`
	Lines    []CapacityBillLine `json:"parts" doc:"by service"`
	Total    float64            `json:"dollars_per_month" doc:"their sum"`
	Million  float64            `json:"dollars_of_a_million_runs" doc:"without what a stack costs that does nothing"`
	Apart    float64            `json:"dollars_per_month_unshared" doc:"the sum if no two runs shared anything: none came together with others"`
	Warm     float64            `json:"dollars_once_to_warm" doc:"for WarmWrites and WarmReads, once, beside the month"`
	Capacity CapacityOfTable    `json:"table" doc:"the part DynamoDB, by the two ways to pay for it"`
}

// CapacityBillLine is a part of a bill.
type CapacityBillLine struct {
	What    string  `json:"what" doc:"what it is for"`
	Dollars float64 `json:"dollars_per_month" doc:"as runs come together in full batches"`
	Apart   float64 `json:"dollars_per_month_unshared" doc:"if no two runs shared anything"`
}

// CapacityOfTable compares two ways to pay for the reads and writes of a table.
type CapacityOfTable struct {
	OnDemand    float64 `json:"on_demand_dollars_per_month" doc:"by what is used"`
	Provisioned float64 `json:"provisioned_dollars_per_month" doc:"for the busiest minute, kept all month"`
	BreakEven   float64 `json:"break_even_share" doc:"share of what is provisioned from which that is the cheaper way, for writes"`
}

// CapacityLimit is something that bends as the load grows, everything else of the load being as it is.
type CapacityLimit struct {
	Name    string  `json:"name" doc:"what bends, and where"`
	Of      string  `json:"of" enum:"setting,quota,gate,design" doc:"setting: a parameter of the template; quota: of the account, which AWS raises on request; gate: of the jobs themselves; design: Belfry's own, or one of AWS that is fixed"`
	Reached float64 `json:"reached_at_runs_per_second" doc:"runs a second in the busiest minute"`
	Times   float64 `json:"times_this_load" doc:"the same, by those of this load: 2 where it has room to double, below 1 where it is exceeded"`
	Exceeds bool    `json:"exceeded" doc:"by this load"`
	Do      string  `json:"do" doc:"what helps"`
	Assumed bool    `json:"assumed" doc:"the figure rests on times that are assumed"`
	Page    string  `json:"page,omitempty" doc:"page of AWS that says the limit, read at quotas_as_of; left out where it is the template's, or of this version of Belfry"`
}

// CapacityVerdict is what the limits come to.
type CapacityVerdict struct {
	One     bool             `json:"one_stack" doc:"one stack carries the load, with the parameters and quotas that the plan names"`
	Stacks  int              `json:"stacks" doc:"how many do, if they share it evenly; the bill is that of them all"`
	Reasons []CapacityReason `json:"reasons" doc:"why one does not"`
	Beyond  bool             `json:"beyond_design" doc:"they are more than 100: this design does not carry the load"`
}

// CapacityReason is one for which no parameter and no quota helps.
type CapacityReason struct {
	What    string  `json:"what" doc:"what bends"`
	Reached float64 `json:"reached_at_runs_per_second" doc:"runs a second in the busiest minute"`
	Stacks  int     `json:"stacks" doc:"with how many each has no more than that"`
}

// CapacityPrice is that of one thing.
type CapacityPrice struct {
	What    string         `json:"what" doc:"what it is for"`
	Dollars float64        `json:"dollars" doc:"price of so many"`
	Per     float64        `json:"per" doc:"how many that is"`
	Page    string         `json:"page" doc:"page of AWS that says so, read at prices_as_of"`
	Tiers   []CapacityTier `json:"tiers,omitempty" doc:"prices of what is beyond a volume"`
}

// CapacityTier is the price of what is beyond so much in a month.
type CapacityTier struct {
	Above   float64 `json:"above" doc:"volume of a month"`
	Dollars float64 `json:"dollars" doc:"price of so many"`
}
