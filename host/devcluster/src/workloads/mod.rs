//! Simulated workloads.

/// Simulates until told to stop.
pub async fn simulate_workloads(_client: kube::Client, shutdown: impl Future<Output = ()>) {
    shutdown.await;
}
