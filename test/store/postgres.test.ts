import { type Cluster, startCluster } from '../support/postgres.ts';
import { postgresContract } from './postgres-contract.ts';

describe('PostgreSQL', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());

  postgresContract('PostgreSQL', { cluster: () => cluster, urlOf: (database) => cluster.url(database) });
});
