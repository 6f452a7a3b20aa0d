// Three processes over one PostgreSQL: races, and the state after they or the database are killed. For longer:
// postgres.long.ts.
import { killedUnderLoad } from './killed.ts';
import { type Processes, startProcesses } from './processes.ts';
import { oneTimeThings, tenant } from './races.ts';

describe('three processes over PostgreSQL', function () {
  this.timeout(1_200_000);

  describe('racing for what may happen only once', () => {
    let processes: Processes;
    before(async () => {
      processes = await startProcesses(3, tenant);
    });
    after(() => processes?.stop());
    oneTimeThings(() => ({ ...processes.server, mail: processes.mail }));
  });

  describe('when they or the database are killed', () => {
    killedUnderLoad({ kills: 3, crashes: 2 });
  });
});
