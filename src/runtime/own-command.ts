// The command of Gatehouse, as somebody types it who has what runs here.
import { fileURLToPath } from 'node:url';

/**
 * `npx gatehouse` runs the package where it is installed. Elsewhere it would fetch the package that has this name on the
 * npm registry, so a checkout names its own program.
 */
export const OWN_COMMAND = import.meta.url.endsWith('.ts')
  ? `node ${fileURLToPath(new URL('../cli.ts', import.meta.url))}`
  : 'npx gatehouse';
