import { sveltekit } from '@sveltejs/kit/vite';
import { defineConfig, loadEnv } from 'vite';

export default defineConfig(({ mode }) => {
  const { PORT } = loadEnv(mode, process.cwd(), '');
  return { plugins: [sveltekit()], server: { port: Number(PORT), strictPort: true } };
});
