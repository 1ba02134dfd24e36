/* The course's explorers in JupyterLab: a renderer for their outputs, which may ask the notebook's kernel, and
   one for folds that have explorers among their parts.

   Written by hand as JupyterLab loads extensions, so there is nothing to build. */
(() => {
  const MIME = 'application/vnd.gemm-course.explorer+json';
  const FOLD = 'application/vnd.gemm-course.fold+json';
  const home = document.currentScript.src.replace(/[^/]*$/, '');
  const script = new Promise((done, failed) => {
    const element = document.createElement('script');
    Object.assign(element, {src: home + 'explorer.js', onload: done, onerror: failed});
    document.head.append(element);
  });
  const NO_KERNEL =
    'This combination is not among the stored pictures, and no Python is running to draw it. Start one: ' +
    'menu Kernel, Restart Kernel.';
  const NO_TRUST =
    'This combination is not among the stored pictures, and the notebook is not trusted, so Python is not ' +
    'asked. Run this cell, then move.';
  const DEAD = ['dead', 'terminating'];

  const python = (panel, model) => async request => {
    const kernel = panel.sessionContext.session?.kernel;
    if (!kernel || DEAD.includes(kernel.status)) throw new Error(NO_KERNEL);
    if (!model.trusted) throw new Error(NO_TRUST);
    const text = JSON.stringify(JSON.stringify(request)); // one string literal of Python
    const call = `__import__('gemm_course.widgets.asked', fromlist=['answer']).answer(${text})`;
    const reply = await kernel.requestExecute({
      code: '', silent: true, store_history: false, user_expressions: {it: call},
    }).done;
    const it = reply.content.user_expressions?.it;
    if (it?.status !== 'ok') throw new Error(`Python could not draw this: ${it?.evalue ?? 'it was interrupted'}.`);
    return it.data['application/json'];
  };

  const plugin = ({INotebookTracker}, {Panel, PanelLayout, Widget}) => ({
    id: 'gemm-course:explorers',
    autoStart: true,
    requires: [INotebookTracker],
    activate: (app, tracker) => {
      const add = panel => {
        const rendermime = panel.content.rendermime;
        const explorer = () => new (class extends Widget {
          async renderModel(model) {
            this.node.dataset.mimeType = MIME;
            const html = String(model.data['text/html'] ?? '');
            await script;
            const still = window.gemmCourse.stillOf(html);
            await window.gemmCourse.explore(this.node, model.data[MIME], {still, ask: python(panel, model)});
          }
        })();
        const fold = () => new (class extends Panel {
          async renderModel(model) {
            const {first, explorers} = model.data[FOLD];
            this.node.dataset.mimeType = FOLD;
            await script;
            const parts = window.gemmCourse.partsOf(String(model.data['text/html'] ?? ''));
            const behind = new Widget({node: window.gemmCourse.behind(first)});
            const inside = (behind.layout = new PanelLayout());
            this.widgets.forEach(widget => widget.dispose()); // of an earlier rendering
            this.addWidget(behind);
            await Promise.all(parts.map((html, place) => {
              const type = explorers[place] ? MIME : 'text/html';
              const data = {'text/html': html, ...(explorers[place] && {[MIME]: explorers[place]})};
              const part = rendermime.createRenderer(type);
              inside.addWidget(part);
              return part.renderModel(rendermime.createModel({data, trusted: model.trusted}));
            }));
          }
        })();
        rendermime.addFactory({safe: true, mimeTypes: [MIME], createRenderer: explorer}, -10);
        rendermime.addFactory({safe: true, mimeTypes: [FOLD], createRenderer: fold}, -10);
      };
      tracker.forEach(add);
      tracker.widgetAdded.connect((_, panel) => add(panel));
    },
  });

  let shared = null;
  const use = async name => (await Object.values(shared[name])[0].get())();
  (window._JUPYTERLAB ??= {})['gemm-course'] = {
    init: scope => { shared = scope; },
    get: async () => {
      const made = plugin(await use('@jupyterlab/notebook'), await use('@lumino/widgets'));
      return () => ({__esModule: true, default: made});
    },
  };
})();
