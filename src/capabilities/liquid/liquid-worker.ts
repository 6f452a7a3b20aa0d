// The thread that renders the tenant's own templates. The process ends it when one takes too long.
import { answerTasks } from '../../runtime/task-worker.ts';
import { createRenderer, type LiquidJob } from './liquid-templates.ts';

export type LiquidAnswer = { text: string } | { fault: string };

const render = createRenderer();

answerTasks(answerOf);

function answerOf(job: LiquidJob): LiquidAnswer {
  try {
    return { text: render(job) };
  } catch (thrown) {
    const [fault = ''] = (thrown instanceof Error ? thrown.message : String(thrown)).split('\n');
    return { fault };
  }
}
