// Makes `dist` of the published package. Dependencies are not bundled, so that whoever installs it can choose their
// versions, for example to fix a vulnerability.
import { join } from 'node:path';
import { bundle, ROOT } from './bundle.ts';

await bundle(join(ROOT, 'dist'), 'apart');
