// Makes `dist` of the published package. Other packages keep the versions that whoever installs it chooses, such as one that mends
// a vulnerability.
import { join } from 'node:path';
import { bundle, ROOT } from './bundle.ts';

await bundle(join(ROOT, 'dist'), 'apart');
