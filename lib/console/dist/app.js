import{A as r,Z as m,b as o,hb as p,ja as i}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
