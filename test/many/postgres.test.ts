// Three processes over one PostgreSQL: races, and what is left when they or it are killed. Longer: postgres.long.ts.
import { killedUnderLoad } from './killed.ts';
import { type Processes, startProcesses } from './processes.ts';
import { oneTimeThings, tenant } from './races.ts';

describe('three processes over PostgreSQL', function () {
  this.timeout(1_200_000);

  describe('let count once what counts once:', () => {
    let processes: Processes;
    before(async () => {
      processes = await startProcesses(3, tenant);
    });
    after(() => processes?.stop());
    oneTimeThings(() => ({ ...processes.server, mail: processes.mail }));
  });

  describe('that are killed:', () => {
    killedUnderLoad({ kills: 3, crashes: 2 });
  });
});
