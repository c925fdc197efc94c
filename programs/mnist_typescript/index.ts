import { TensorFlowCluster } from "@pulumi/tfdeploy";

const mnist = new TensorFlowCluster("mnist", {
    command: ["python", "train.py", "--data=mnist.npz"],
    code: "train",
    dataDir: "data",
    metrics: { accuracy: "MNIST accuracy: (\\S+)" },
});

export const { status, state, run, tasks, machines, logs, endpoints, cost } = mnist;
export const accuracy = mnist.metrics.apply((found) => found.accuracy);
