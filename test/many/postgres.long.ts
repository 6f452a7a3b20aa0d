// The tests of postgres.test.ts, for a longer time.
import { killedUnderLoad } from './killed.ts';

describe('three processes over PostgreSQL, killed again and again', function () {
  this.timeout(3_600_000);
  killedUnderLoad({ kills: 50, crashes: 20, isPatient: true });
});
